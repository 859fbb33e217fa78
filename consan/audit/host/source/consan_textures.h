// Arrays and texture objects, for runtime.cpp. An array is memory of the device with its elements in order, whose address nobody is given.
//
// Not here: surfaces, mipmaps, views of a resource, sRGB.
struct cudaArray {
    cudaChannelFormatDesc channels;
    cudaExtent extent; // height and depth are 0 where it has none
    unsigned flags;
    char *data;

    size_t element() const { return size_t(channels.x + channels.y + channels.z + channels.w) / 8; }
    size_t rows() const { return extent.height ? extent.height : 1; }
    size_t slices() const { return extent.depth ? extent.depth : 1; }
    size_t row() const { return extent.width * element(); }
};

namespace {
// Bytes in rows and slices.
struct Rows {
    char *data;
    size_t row, slice;

    Rows at(size_t x, size_t y, size_t z) const { return {data + z * slice + y * row + x, row, slice}; }
};

Rows rows_of(const cudaArray *array, cudaPos at) {
    return Rows{array->data, array->row(), array->row() * array->rows()}.at(at.x * array->element(), at.y, at.z);
}
Rows rows_of(const cudaPitchedPtr &given, cudaPos at) {
    return Rows{static_cast<char *>(given.ptr), given.pitch, given.pitch * given.ysize}.at(at.x, at.y, at.z);
}
Rows rows_of(const void *data, size_t pitch) { return {static_cast<char *>(const_cast<void *>(data)), pitch, 0}; }
Rows rows_of(const cudaArray *array, size_t bytes, size_t y) { return Rows{array->data, array->row(), 0}.at(bytes, y, 0); }

cudaError_t copied(Rows to, Rows from, size_t width, size_t height, size_t depth = 1) {
    if (to.data == nullptr || from.data == nullptr) return noted(cudaErrorInvalidValue);
    for (size_t z = 0; z < depth; ++z) copied_rows(to.at(0, 0, z).data, to.row, from.at(0, 0, z).data, from.row, width, height);
    return cudaSuccess;
}

// In the order in which launcher.py reads them.
enum Field { KIND, BITS, CHANNELS, WIDTH, HEIGHT, DEPTH, LAYERED, CUBE, MEMORY, FILTER, X, Y, Z, NORMALIZED, READ, ROW, ADDRESS, FIELDS };

bool described(const cudaResourceDesc &resource, long long *fields) {
    const auto channels = [&](const cudaChannelFormatDesc &given) {
        fields[KIND] = given.f, fields[BITS] = given.x, fields[CHANNELS] = (given.x > 0) + (given.y > 0) + (given.z > 0) + (given.w > 0);
    };
    const auto sized = [&](size_t width, size_t height, size_t depth, const void *data) {
        fields[WIDTH] = width, fields[HEIGHT] = height, fields[DEPTH] = depth, fields[ADDRESS] = reinterpret_cast<long long>(data);
    };
    fields[MEMORY] = resource.resType;
    if (resource.resType == cudaResourceTypeArray) {
        const cudaArray &array = *resource.res.array.array;
        channels(array.channels);
        sized(array.extent.width, array.extent.height, array.extent.depth, array.data);
        fields[CUBE] = (array.flags & cudaArrayCubemap) != 0;
        fields[LAYERED] = (array.flags & cudaArrayLayered) != 0 || fields[CUBE];
    } else if (resource.resType == cudaResourceTypeLinear) {
        const auto &linear = resource.res.linear;
        channels(linear.desc);
        const size_t bits = linear.desc.x + linear.desc.y + linear.desc.z + linear.desc.w;
        sized(bits ? linear.sizeInBytes * 8 / bits : 0, 0, 0, linear.devPtr);
    } else if (resource.resType == cudaResourceTypePitch2D) {
        const auto &pitched = resource.res.pitch2D;
        channels(pitched.desc);
        sized(pitched.width, pitched.height, 0, pitched.devPtr);
        fields[ROW] = pitched.pitchInBytes;
    } else {
        return false;
    }
    return true;
}
} // namespace

extern "C" {
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) { return {x, y, z, w, kind}; }
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *channels, cudaExtent extent, unsigned flags) {
    cudaArray made = {*channels, extent, flags, nullptr};
    const cudaError_t error = allocated(reinterpret_cast<void **>(&made.data), made.row() * made.rows() * made.slices());
    *array = error == cudaSuccess ? new cudaArray(made) : nullptr;
    return error;
}
cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *channels, size_t width, size_t height, unsigned flags) {
    return cudaMalloc3DArray(array, channels, {width, height, 0}, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
    if (array != nullptr) released(array->data);
    delete array;
    return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *channels, cudaArray_const_t array) { return *channels = array->channels, cudaSuccess; }
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *channels, cudaExtent *extent, unsigned *flags, cudaArray_t array) {
    if (channels) *channels = array->channels;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return cudaSuccess;
}
cudaError_t cudaMalloc3D(cudaPitchedPtr *made, cudaExtent extent) {
    *made = {nullptr, (extent.width + 511) / 512 * 512, extent.width, extent.height};
    return allocated(&made->ptr, made->pitch * extent.height * extent.depth);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
    for (size_t z = 0; z < extent.depth; ++z) cudaMemset2D(rows_of(to, {0, 0, z}).data, to.pitch, value, extent.width, extent.height);
    return cudaSuccess;
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, cudaMemcpyKind) {
    return copied(rows_of(to, x, y).data, from, bytes);
}
cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind) {
    return copied(to, rows_of(from, x, y).data, bytes);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, cudaMemcpyKind) {
    return copied(rows_of(to, x, y), rows_of(from, pitch), width, height);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t) {
    return cudaMemcpy2DToArray(to, x, y, from, pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height, cudaMemcpyKind) {
    return copied(rows_of(to, pitch), rows_of(from, x, y), width, height);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t) {
    return cudaMemcpy2DFromArray(to, pitch, from, x, y, width, height, kind);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *given) {
    const cudaArray *array = given->dstArray ? given->dstArray : given->srcArray;
    const Rows to = given->dstArray ? rows_of(given->dstArray, given->dstPos) : rows_of(given->dstPtr, given->dstPos);
    const Rows from = given->srcArray ? rows_of(given->srcArray, given->srcPos) : rows_of(given->srcPtr, given->srcPos);
    return copied(to, from, given->extent.width * (array ? array->element() : 1), given->extent.height, given->extent.depth);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *given, cudaStream_t) { return cudaMemcpy3D(given); }

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *made, const cudaResourceDesc *resource, const cudaTextureDesc *texture,
                                    const cudaResourceViewDesc *view) {
    long long fields[FIELDS] = {};
    const auto &border = texture->borderColor;
    if (view != nullptr || texture->sRGB || border[0] != 0 || border[1] != 0 || border[2] != 0 || border[3] != 0 || !described(*resource, fields))
        return hooks.texture(nullptr), noted(cudaErrorNotSupported);
    fields[FILTER] = texture->filterMode, fields[NORMALIZED] = texture->normalizedCoords != 0, fields[READ] = texture->readMode;
    for (int i = 0; i < 3; ++i) fields[X + i] = texture->addressMode[i];
    *made = hooks.texture(fields);
    return *made ? cudaSuccess : noted(cudaErrorInvalidValue);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
    if (texture != 0) hooks.release_texture(texture);
    return cudaSuccess;
}
}
