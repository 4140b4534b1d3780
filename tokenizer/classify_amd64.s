#include "textflag.h"

// Bytes that are broadcast to all lanes.
DATA bytes<>+0(SB)/1, $0x20  // lower case; also the blank
DATA bytes<>+1(SB)/1, $0x1f  // 0x80 - 'a': letters become the lowest signed bytes
DATA bytes<>+2(SB)/1, $0x9a  // 0x80 + 26
DATA bytes<>+3(SB)/1, $0x50  // 0x80 - '0'
DATA bytes<>+4(SB)/1, $0x8a  // 0x80 + 10
DATA bytes<>+5(SB)/1, $0x77  // 0x80 - '\t'
DATA bytes<>+6(SB)/1, $0x85  // 0x80 + 5
DATA bytes<>+7(SB)/1, $0x0a  // '\n'
DATA bytes<>+8(SB)/1, $0x0d  // '\r'
DATA bytes<>+9(SB)/1, $0x27  // '\''
GLOBL bytes<>(SB), RODATA|NOPTR, $10

// MASK(lo, hi, r) packs the top bits of 64 bytes into r. Uses DX.
#define MASK(lo, hi, r) \
	VPMOVMSKB lo, r  \
	VPMOVMSKB hi, DX \
	SHLQ $32, DX     \
	ORQ  DX, r

// RANGE(a, b, shift, bound, r): r has a bit for each byte of a, b that, with shift added, is below bound (signed).
// Uses Y2-Y5, DX.
#define RANGE(a, b, shift, bound, r) \
	VPBROADCASTB bytes<>+shift(SB), Y4 \
	VPBROADCASTB bytes<>+bound(SB), Y5 \
	VPADDB   a, Y4, Y2  \
	VPADDB   b, Y4, Y3  \
	VPCMPGTB Y2, Y5, Y2 \
	VPCMPGTB Y3, Y5, Y3 \
	MASK(Y2, Y3, r)

// EQUAL(c, r): r has a bit for each byte of the block that is c. Uses Y2-Y4, DX.
#define EQUAL(c, r) \
	VPBROADCASTB bytes<>+c(SB), Y4 \
	VPCMPEQB Y0, Y4, Y2 \
	VPCMPEQB Y1, Y4, Y3 \
	MASK(Y2, Y3, r)

// func classifyAVX2(b *[64]byte, m *masks)
TEXT ·classifyAVX2(SB), NOSPLIT, $0-16
	MOVQ    b+0(FP), AX
	MOVQ    m+8(FP), BX
	VMOVDQU (AX), Y0
	VMOVDQU 32(AX), Y1

	VPBROADCASTB bytes<>+0(SB), Y4
	VPOR    Y0, Y4, Y6
	VPOR    Y1, Y4, Y7
	RANGE(Y6, Y7, 1, 2, CX) // letters, in lower case
	MOVQ    CX, 0(BX)
	RANGE(Y0, Y1, 3, 4, CX) // digits
	MOVQ    CX, 8(BX)

	EQUAL(7, R8)            // \n
	EQUAL(8, R9)            // \r
	ORQ     R8, R9
	MOVQ    R9, 32(BX)
	EQUAL(0, R10)           // blanks
	MOVQ    R10, 24(BX)
	RANGE(Y0, Y1, 5, 6, CX) // \t \n \v \f \r
	NOTQ    R9
	ANDQ    R9, CX
	ORQ     R10, CX
	MOVQ    CX, 16(BX)

	EQUAL(9, CX)            // apostrophes
	MOVQ    CX, 40(BX)
	MASK(Y0, Y1, CX)        // not ASCII
	MOVQ    CX, 48(BX)
	VZEROUPPER
	RET
