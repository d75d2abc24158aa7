/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/device.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

struct device {
    int ordinal;
    cudaStream_t stream;
    bool owns_stream;
    cublasHandle_t blas; /* null until needed */
    void *blas_memory;   /* its workspace */
    char failure[200];   /* the first one; "" if there was none */
};

static const char *absence(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "";
    case cudaErrorNoDevice:
        return "no device";
    case cudaErrorInsufficientDriver:
        return "no device: the machine has no NVIDIA driver, or one too old for this build";
    default:
        return cudaGetErrorString(error);
    }
}

int device_count(const char **reason)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess)
        count = 0;
    else if (count == 0)
        error = cudaErrorNoDevice;
    cudaGetLastError(); /* so that the next call does not report it */
    if (reason)
        *reason = absence(error);
    return count;
}

atn_status device_describe(int ordinal, atn_device_info *info)
{
    cudaDeviceProp properties;
    if (ordinal < 0 || ordinal >= device_count(NULL) ||
        cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess)
        return ATN_ERR_DEVICE;
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    info->capability = 10 * properties.major + properties.minor;
    info->multiprocessors = properties.multiProcessorCount;
    info->memory_bytes = (int64_t)properties.totalGlobalMem;
    info->shared_bytes = (int64_t)properties.sharedMemPerBlockOptin;
    info->cache_bytes = (int64_t)properties.l2CacheSize;
    cudaDeviceGetAttribute(&info->clock_khz, cudaDevAttrClockRate, ordinal);
    cudaDeviceGetAttribute(&info->memory_clock_khz, cudaDevAttrMemoryClockRate, ordinal);
    cudaDriverGetVersion(&info->driver);
    cudaRuntimeGetVersion(&info->runtime);
    return ATN_OK;
}

atn_status device_check(atn_context *context)
{
    if (context->device->failure[0] == '\0')
        return ATN_OK;
    return core_fail(context, ATN_ERR_DEVICE, "%s", context->device->failure);
}

atn_status device_result(atn_context *context, int error, const char *what)
{
    if (error == cudaSuccess)
        return ATN_OK;
    const char *text = cudaGetErrorString((cudaError_t)error);
    cudaGetLastError();
    if (error == cudaErrorMemoryAllocation)
        return core_fail(context, ATN_ERR_MEMORY, "%s: %s", what, text);
    device *d = context->device;
    if (d->failure[0] == '\0')
        snprintf(d->failure, sizeof d->failure, "%s: %s", what, text);
    return device_check(context);
}

/* Also works on a device that has failed, so that its memory can be freed. */
atn_status device_enter(atn_context *context, int *before)
{
    if (cudaGetDevice(before) != cudaSuccess)
        *before = context->device->ordinal;
    cudaError_t error = cudaSetDevice(context->device->ordinal);
    atn_status status = device_check(context);
    return status == ATN_OK ? device_result(context, error, "cudaSetDevice") : status;
}

void device_leave(int before)
{
    if (cudaSetDevice(before) != cudaSuccess)
        cudaGetLastError();
}

atn_status device_open(atn_context *context, int ordinal, void *stream)
{
    void *memory;
    if (ordinal < 0 || ordinal >= device_count(NULL))
        return ATN_ERR_DEVICE;
    atn_status status = core_allocate(context, sizeof(device), &memory);
    if (status != ATN_OK)
        return status;
    context->device = (device *)memory;
    memset(memory, 0, sizeof(device));
    context->device->ordinal = ordinal;
    context->device->stream = (cudaStream_t)stream;
    int before;
    status = device_enter(context, &before);
    if (status == ATN_OK && !stream) {
        status = device_result(
            context, cudaStreamCreateWithFlags(&context->device->stream, cudaStreamNonBlocking),
            "cudaStreamCreate");
        context->device->owns_stream = status == ATN_OK;
    }
    device_leave(before);
    if (status != ATN_OK)
        device_close(context);
    return status;
}

static void close_blas(device *d)
{
    if (d->blas)
        cublasDestroy(d->blas);
    cudaFree(d->blas_memory);
    d->blas = NULL;
    d->blas_memory = NULL;
}

void device_close(atn_context *context)
{
    int before;
    if (!context->device)
        return;
    device_enter(context, &before);
    close_blas(context->device);
    if (context->device->owns_stream)
        cudaStreamDestroy(context->device->stream);
    device_leave(before);
    core_release(context, context->device);
    context->device = NULL;
}

atn_status device_allocate(atn_context *context, size_t bytes, void **memory)
{
    *memory = NULL;
    atn_status status = device_check(context);
    if (status != ATN_OK || bytes == 0)
        return status;
    char what[80];
    snprintf(what, sizeof what, "%zu bytes of device memory", bytes);
    return device_result(context, cudaMalloc(memory, bytes), what);
}

void device_release(atn_context *, void *memory)
{
    cudaFree(memory); /* tried even if the device has failed */
}

static atn_status copy(atn_context *context, void *to, const void *from, size_t bytes,
                       cudaMemcpyKind kind, const char *what)
{
    atn_status status = device_check(context);
    if (status == ATN_OK && bytes > 0)
        status = device_result(
            context, cudaMemcpyAsync(to, from, bytes, kind, context->device->stream), what);
    return status == ATN_OK ? device_synchronise(context) : status;
}

atn_status device_upload(atn_context *context, void *to, const void *from, size_t bytes)
{
    return copy(context, to, from, bytes, cudaMemcpyHostToDevice, "copy to the device");
}

atn_status device_download(atn_context *context, void *to, const void *from, size_t bytes)
{
    return copy(context, to, from, bytes, cudaMemcpyDeviceToHost, "copy from the device");
}

atn_status device_copy(atn_context *context, void *to, const void *from, size_t bytes)
{
    atn_status status = device_check(context);
    if (status != ATN_OK || bytes == 0)
        return status;
    return device_result(
        context,
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, context->device->stream),
        "copy within the device");
}

atn_status device_clear(atn_context *context, void *memory, size_t bytes)
{
    if (bytes == 0)
        return ATN_OK;
    return device_result(context, cudaMemsetAsync(memory, 0, bytes, context->device->stream),
                         "cudaMemset");
}

/* Each matrix is one 2D memset. */
atn_status device_clear_tensor(atn_context *context, const atn_tensor *t)
{
    size_t size = atn_dtype_size(t->dtype);
    atn_status status = device_check(context);
    if (t->rows == 0 || t->cols == 0)
        return status;
    for (int64_t i = 0; status == ATN_OK && i < t->batch * t->heads; i++)
        status = device_result(
            context,
            cudaMemset2DAsync(atn_tensor_matrix(t, i / t->heads, i % t->heads),
                              (size_t)(t->rows > 1 ? t->row_stride : t->cols) * size, 0,
                              (size_t)t->cols * size, (size_t)t->rows, context->device->stream),
            "cudaMemset2D");
    return status;
}

atn_status device_synchronise(atn_context *context)
{
    atn_status status = device_check(context);
    if (status != ATN_OK)
        return status;
    return device_result(context, cudaStreamSynchronize(context->device->stream),
                         "work on the device");
}

atn_status device_mark(atn_context *context, void **mark)
{
    cudaEvent_t event = static_cast<cudaEvent_t>(*mark);
    atn_status status = device_check(context);
    if (status == ATN_OK && !event) {
        status = device_result(context, cudaEventCreate(&event), "cudaEventCreate");
        *mark = status == ATN_OK ? event : NULL;
    }
    if (status != ATN_OK)
        return status;
    return device_result(context, cudaEventRecord(event, context->device->stream),
                         "cudaEventRecord");
}

void device_free_mark(atn_context *, void *mark)
{
    cudaEventDestroy(static_cast<cudaEvent_t>(mark));
}

atn_status device_between(atn_context *context, const void *from, const void *to, double *seconds)
{
    cudaEvent_t start = static_cast<cudaEvent_t>(const_cast<void *>(from));
    cudaEvent_t stop = static_cast<cudaEvent_t>(const_cast<void *>(to));
    float milliseconds = 0;
    atn_status status = device_check(context);
    if (status == ATN_OK)
        status = device_result(context, cudaEventSynchronize(stop), "work on the device");
    if (status == ATN_OK)
        status = device_result(context, cudaEventElapsedTime(&milliseconds, start, stop),
                               "cudaEventElapsedTime");
    *seconds = 1e-3 * static_cast<double>(milliseconds);
    return status;
}

atn_status device_check_memory(atn_context *context, const char *name, const void *memory)
{
    cudaPointerAttributes attributes;
    atn_status status = device_check(context);
    if (status != ATN_OK)
        return status;
    cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
    if (error != cudaSuccess && error != cudaErrorInvalidValue)
        return device_result(context, error, "cudaPointerGetAttributes");
    cudaGetLastError();
    if (error == cudaSuccess && ((attributes.type == cudaMemoryTypeDevice &&
                                  attributes.device == context->device->ordinal) ||
                                 attributes.type == cudaMemoryTypeManaged))
        return ATN_OK;
    return core_fail(context, ATN_ERR_VALUE, "%s is not in the memory of CUDA device %d", name,
                     context->device->ordinal);
}

/* `otherwise` if the device does not say. */
static int attribute_of(int ordinal, cudaDeviceAttr attribute, int otherwise)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, attribute, ordinal) != cudaSuccess)
        cudaGetLastError();
    return value > 0 ? value : otherwise;
}

int device_multiprocessors(const atn_context *context)
{
    return attribute_of(context->device->ordinal, cudaDevAttrMultiProcessorCount, 1);
}

size_t device_shared(const atn_context *context)
{
    return (size_t)attribute_of(context->device->ordinal, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                48 << 10);
}

void *device_stream(const atn_context *context)
{
    return context->device->stream;
}

static atn_status blas_result(atn_context *context, cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return ATN_OK;
    return core_fail(context,
                     status == CUBLAS_STATUS_ALLOC_FAILED ? ATN_ERR_MEMORY : ATN_ERR_DEVICE,
                     "cuBLAS: %s", cublasGetStatusString(status));
}

/* The sizes that cuBLAS's documentation recommends (cublasSetWorkspace). */
static size_t blas_workspace(int ordinal)
{
    int major = attribute_of(ordinal, cudaDevAttrComputeCapabilityMajor, 0);
    return (size_t)(major >= 9 ? 32 : 4) << 20;
}

/* The stream is set first: setting it resets the workspace. */
static atn_status open_blas(atn_context *context, device *d)
{
    size_t bytes = blas_workspace(d->ordinal);
    atn_status status = blas_result(context, cublasCreate(&d->blas));
    if (status == ATN_OK)
        status = blas_result(context, cublasSetStream(d->blas, d->stream));
    if (status == ATN_OK)
        status = device_allocate(context, bytes, &d->blas_memory);
    if (status == ATN_OK)
        status = blas_result(context, cublasSetWorkspace(d->blas, d->blas_memory, bytes));
    if (status != ATN_OK)
        close_blas(d);
    return status;
}

atn_status device_blas(atn_context *context, void **handle)
{
    device *d = context->device;
    int before;
    atn_status status = device_enter(context, &before);
    if (status == ATN_OK && !d->blas)
        status = open_blas(context, d);
    device_leave(before);
    *handle = status == ATN_OK ? d->blas : NULL;
    return status;
}
