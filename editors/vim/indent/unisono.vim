if exists("b:did_indent")
  finish
endif
let b:did_indent = 1

setlocal indentexpr=UnisonoIndent() indentkeys=0},0),0],!^F,o,O
let b:undo_indent = "setlocal indentexpr< indentkeys<"

if exists("*UnisonoIndent")
  finish
endif

" A line is one step deeper than the one before for each bracket that stays open there.
function! UnisonoIndent()
  let before = prevnonblank(v:lnum - 1)
  if before == 0
    return 0
  endif
  let text = substitute(getline(before), '"\%(\\.\|[^"\\]\)*"\|#.*$', '', 'g')
  let opened = len(substitute(text, '[^[({]', '', 'g')) - len(substitute(substitute(text, '^\s*[])}]\+', '', ''), '[^])}]', '', 'g'))
  let step = opened > 0 ? shiftwidth() : opened < 0 ? -shiftwidth() : 0
  let closes = getline(v:lnum) =~# '^\s*[])}]' ? shiftwidth() : 0
  return max([indent(before) + step - closes, 0])
endfunction
