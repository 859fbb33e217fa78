"""The build of the package: setuptools, and the libraries in C++ and C that come with it. Nothing here is used at run time."""
