/* A library of Windows 10 that Wine 8 lacks. Rust's standard library takes random numbers from its one function
 * here, which an older library has under another name. */
#include <windows.h>

BOOLEAN WINAPI SystemFunction036(void *bytes, ULONG count);

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *bytes, SIZE_T count)
{
    return SystemFunction036(bytes, (ULONG)count);
}
