"""Names that a function of C cannot have: the language's words, what compilers define, and the standard library's.

A function called ``log`` compiles, and then stands in for the library's ``log`` in the whole program.
"""

import re

# Keywords of C89 to C23, and what compilers add to them outside of their strict modes.
_WORDS = frozenset(
    [
        "alignas",
        "alignof",
        "asm",
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "constexpr",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "false",
        "float",
        "for",
        "fortran",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "main",
        "nullptr",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "struct",
        "switch",
        "thread_local",
        "true",
        "typedef",
        "typeof",
        "typeof_unqual",
        "union",
        "unsigned",
        "void",
        "volatile",
        "wchar_t",
        "while",
    ]
)
# Macros that compilers define without an underscore.
_MACROS = frozenset(["hpux", "i386", "linux", "m68k", "mips", "pyr", "sequent", "sgi", "sparc", "sun", "unix", "vax"])
# Functions and objects with external linkage: ISO/IEC 9899:2018, annex B, and C23's additions.
_MATHS = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor "
    "fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan "
    "nearbyint nextafter nexttoward pow remainder remquo rint round roundeven scalbln scalbn sin sinh sqrt tan tanh "
    "tgamma trunc cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal "
    "csin csinh csqrt ctan ctanh"
)
_OTHERS = (
    "abort abs aligned_alloc asctime at_quick_exit atexit atof atoi atol atoll btowc bsearch calloc call_once "
    "clearerr clock ctime difftime div errno exit fclose feclearexcept fegetenv fegetexceptflag fegetround "
    "feholdexcept feof feraiseexcept ferror fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fflush "
    "fgetc fgetpos fgets fgetwc fgetws fopen fprintf fputc fputs fputwc fputws fread free free_sized freopen "
    "fscanf fseek fsetpos ftell fwide fwprintf fwrite fwscanf getc getchar getenv gets getwc getwchar gmtime "
    "gmtime_r imaxabs imaxdiv isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace "
    "isupper isxdigit iswalnum iswalpha iswblank iswcntrl iswctype iswdigit iswgraph iswlower iswprint iswpunct "
    "iswspace iswupper iswxdigit labs ldiv llabs lldiv localeconv localtime localtime_r longjmp malloc mblen "
    "mbrlen mbrtoc16 mbrtoc32 mbrtoc8 mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc memccpy memchr memcmp memcpy "
    "memmove memset memset_explicit mktime perror printf putc putchar puts putwc putwchar qsort quick_exit raise "
    "rand realloc remove rename rewind scanf setbuf setjmp setlocale setvbuf signal snprintf sprintf srand sscanf "
    "stderr stdin stdout strcat strchr strcmp strcoll strcpy strcspn strdup strerror strfromd strfromf strfroml "
    "strftime strlen strncat strncmp strncpy strndup strpbrk strrchr strspn strstr strtod strtof strtok strtol "
    "strtold strtoll strtoul strtoull strxfrm swprintf swscanf system time timegm timespec_get timespec_getres "
    "tmpfile tmpnam tolower toupper towctrans towlower towupper ungetc ungetwc vfprintf vfscanf vfwprintf "
    "vfwscanf vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vwprintf vwscanf wcrtomb wcscat wcschr "
    "wcscmp wcscoll wcscpy wcscspn wcsftime wcslen wcsncat wcsncmp wcsncpy wcspbrk wcsrchr wcsrtombs wcsspn "
    "wcsstr wcstod wcstof wcstok wcstol wcstold wcstoll wcstombs wcstoul wcstoull wcsxfrm wctob wctomb wctrans "
    "wctype wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf wscanf"
)
# What the systems that C programs run on put beside it, and every program uses without knowing.
_SYSTEM = [
    "alloca",
    "close",
    "end",
    "environ",
    "etext",
    "edata",
    "fork",
    "index",
    "j0",
    "j1",
    "jn",
    "link",
    "open",
    "pipe",
    "read",
    "select",
    "write",
    "y0",
    "y1",
    "yn",
]
_LIBRARY = frozenset(name + kind for name in _MATHS.split() for kind in ("", "f", "l")) | {*_OTHERS.split(), *_SYSTEM}


def reason_against(name: str) -> str | None:
    """Why a function of C cannot have this name, or None where it can.

    Examples
    --------
    >>> reason_against("log")
    'a function of the standard library is called so'
    >>> reason_against("score") is None
    True
    """
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return "names are letters, digits and _"
    if name.startswith("_"):
        return "names that begin with _ belong to the compiler and its libraries"
    if name in _WORDS:
        return "it is a word of the language"
    if name in _MACROS:
        return "some compilers define it as a macro"
    if name in _LIBRARY:
        return "a function of the standard library is called so"
    return None
