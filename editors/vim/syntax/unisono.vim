if exists("b:current_syntax")
  finish
endif

syntax keyword unisonoConditional if else return
syntax keyword unisonoRepeat for in while break continue
syntax keyword unisonoKeyword let var as with
syntax keyword unisonoDefine def fn nextgroup=unisonoFunction skipwhite
syntax keyword unisonoOperatorWord and or not
syntax keyword unisonoInclude import
syntax keyword unisonoBoolean true false
syntax keyword unisonoConstant none pi tau inf nan
syntax keyword unisonoType bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 int str
" Names elsewhere: these begin a declaration only at the start of a line.
syntax match unisonoDefine "^\s*\%(type\|axis\)\ze\s\+\h" nextgroup=unisonoFunction skipwhite
syntax match unisonoDefine "^\s*\%(test\|bench\)\ze\s\+\""
syntax match unisonoFunction "\h\w*" contained
syntax match unisonoDecorator "^\s*@\h\w*"

syntax match unisonoNumber "\<\d[0-9_]*\%(\.\d[0-9_]*\|\.\%([.A-Za-z_]\)\@!\)\?\%([eE][+-]\?\d\+\)\?\%(f16\|bf16\|f32\|f64\|[iu]\%(8\|16\|32\|64\)\)\?\>"
syntax match unisonoNumber "\<0\%(x[0-9a-fA-F_]\+\|o[0-7_]\+\|b[01_]\+\)\%([iu]\%(8\|16\|32\|64\)\)\?\>"
" After a point, a keyword is a field.
syntax match unisonoField "\.\h\w*"

syntax region unisonoString start=+"+ skip=+\\.+ end=+"+ oneline contains=unisonoEscape,unisonoInterpolation
syntax match unisonoEscape "\\\%([nt\\\"{}]\|u{\x\+}\)" contained
syntax region unisonoInterpolation matchgroup=unisonoEscape start="{" end="}" contained oneline contains=TOP

syntax match unisonoComment "#.*$" contains=unisonoTodo,@Spell
syntax match unisonoDocumentation "##.*$" contains=unisonoExample,unisonoTodo,@Spell
syntax match unisonoExample ">>>.*$" contained
syntax keyword unisonoTodo TODO FIXME NOTE contained

highlight default link unisonoConditional Conditional
highlight default link unisonoRepeat Repeat
highlight default link unisonoKeyword Keyword
highlight default link unisonoDefine Define
highlight default link unisonoFunction Function
highlight default link unisonoOperatorWord Operator
highlight default link unisonoInclude Include
highlight default link unisonoBoolean Boolean
highlight default link unisonoConstant Constant
highlight default link unisonoType Type
highlight default link unisonoDecorator PreProc
highlight default link unisonoNumber Number
highlight default link unisonoString String
highlight default link unisonoEscape SpecialChar
highlight default link unisonoComment Comment
highlight default link unisonoDocumentation SpecialComment
highlight default link unisonoExample Special
highlight default link unisonoTodo Todo

let b:current_syntax = "unisono"
