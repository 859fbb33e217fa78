"""What `consan audit` takes from the Makefile of a program, and which sizes it gives the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.audit.host import makefile, sizes
from consan.audit.host.makefile import Recipe, recipe_of, smaller_arguments

MAKEFILE = """
program = app
source = main.cu helpers.cpp
INC := ../shared
CFLAGS += -I$(INC) -DUSE_FAST -DWIDTH=4
ifeq ($(DEBUG),yes)
CFLAGS += -DDEBUG
endif
run: $(program)
\t$(LAUNCHER) ./$(program) 40960 data.txt 100
"""
MAIN = "int main(int argc, char **argv) { const int num_elements = atoi(argv[1]); int repeat = std::stoi(argv[3]); }"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for name, text in (("Makefile", MAKEFILE), ("main.cu", MAIN), ("helpers.cpp", ""), ("data.txt", "1")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_makefile_names_sources_folders_macros_and_arguments(program: Path) -> None:
    found = recipe_of(program / "main.cu")
    assert found.sources == (program / "main.cu", program / "helpers.cpp")
    assert found.folders == ((program / "../shared").resolve(),)
    assert found.macros == ("USE_FAST", "WIDTH=4")
    assert found.arguments == ("40960", str(program / "data.txt"), "100")
    assert found.lead == program / "main.cu"


def test_a_makefile_lists_objects_in_place_of_sources(program: Path) -> None:
    (program / "Makefile").write_text("obj = main.o helpers.o none.o $(more:.c=.o)\nobj_dir = build\n")
    assert recipe_of(program / "main.cu").sources == (program / "main.cu", program / "helpers.cpp")


def test_a_source_that_no_makefile_names_has_no_recipe(program: Path) -> None:
    (program / "other.cu").write_text(MAIN)
    assert recipe_of(program / "other.cu") == Recipe()


def test_arguments_become_smaller_by_the_names_of_their_variables(program: Path) -> None:
    assert smaller_arguments(MAIN, ("40960", "data.txt", "100")) == ("320", "data.txt", "1")


def test_several_sizes_become_smaller_than_one() -> None:
    assert sizes.smaller_arguments([("", "4096")]) == ("256",)
    assert sizes.smaller_arguments([("", "4096"), ("", "4096"), ("", "4096")]) == ("32", "32", "32")
    assert sizes.smaller_arguments([("", "1000003")]) == ("2048",)


def test_constants_of_the_host_become_smaller_and_tiles_stay() -> None:
    text = "const int N = 1 << 20;\n#define TILE_SIZE 512\n__global__ void f() { int n = 4096; }\nvoid run() { int width = 64 * 64; }\n"
    assert sizes.shrunk_text(text) == text.replace("1 << 20", "512").replace("64 * 64", "512")


CMAKE = """
set(CMAKE_CUDA_ARCHITECTURES 75 80)  # add_executable(none main.cu)
include_directories(${PROJECT_SOURCE_DIR}/shared "${CUDA_INCLUDE_DIRS}")
aux_source_directory(${PROJECT_SOURCE_DIR}/parts PARTS)
file(GLOB MORE "more/*.cpp")
list(APPEND MORE last.cpp)
add_executable(app main.cu ${PARTS} ${MORE})
add_executable(alone alone.cu)
target_compile_features(app PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--x>)
"""


def test_a_cmake_file_names_sources_and_folders(tmp_path: Path) -> None:
    files = ("main.cu", "alone.cu", "last.cpp", "parts/a.cu", "parts/a.h", "more/b.cpp", "shared/c.h", "other.cu")
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MAIN if name == "main.cu" else "")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    found = recipe_of(tmp_path / "main.cu")
    assert found.sources == tuple(tmp_path / each for each in ("main.cu", "parts/a.cu", "more/b.cpp", "last.cpp"))
    assert found.folders == (tmp_path / "shared",)
    assert recipe_of(tmp_path / "parts/a.cu") == found
    assert recipe_of(tmp_path / "alone.cu").sources == (tmp_path / "alone.cu",)
    assert recipe_of(tmp_path / "other.cu") == Recipe()


def test_a_makefile_that_names_the_source_goes_before_cmake(program: Path) -> None:
    (program / "CMakeLists.txt").write_text("add_executable(app main.cu)")
    assert recipe_of(program / "main.cu").sources == (program / "main.cu", program / "helpers.cpp")


def test_sizes_in_lists_become_smaller_each() -> None:
    text = "int main() { std::vector<int> SIZE = {128, 512, 4096}; int width[] = {1000, 2048}; std::vector<int> ids = {512, 4096}; }"
    assert sizes.shrunk_text(text) == text.replace("512, 4096}; int", "256, 256}; int").replace("1000, 2048", "500, 256")


@pytest.mark.parametrize(
    ("name", "measures"),
    [("blocksize", True), ("n", True), ("iterations", True), ("ishift", True), ("kernel_num", False), ("kernel", False), ("mode", False)],
)
def test_a_first_argument_that_measures_something_chooses_no_kernel(name: str, measures: bool) -> None:
    assert (
        makefile.first_is_size(f"int main(int argc, char **argv) {{ int {name} = 1; if (argc > 1) {name} = atoi(argv[1]); }}") == measures
    )


def test_the_size_of_a_block_stays() -> None:
    text = "int main() { int blocksize = 1024, size = 1 << 20; k<<<size / blocksize, blocksize>>>(); }"
    assert "blocksize = 1024, size = " in sizes.shrunk_text(text)
    assert "1 << 20" not in sizes.shrunk_text(text)


@pytest.mark.parametrize("launch", ["dim3 grids(n / bs), blocks(bs); k<<<grids, blocks>>>();", "k<<<n / bs, bs, 4 * bs>>>();"])
def test_a_batch_that_a_launch_takes_for_a_block_is_none(launch: str) -> None:
    text = "int main() { for (int bs = 64; bs <= 1024; bs *= 2) { %s } }"
    assert "bs = 64" in sizes.shrunk_text(text % launch)
    assert "bs = 2;" in sizes.shrunk_text(text % "k<<<bs, 256>>>();")
