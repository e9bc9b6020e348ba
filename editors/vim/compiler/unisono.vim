" :make checks the file, and the messages fill the quickfix list.
if exists("current_compiler")
  finish
endif
let current_compiler = "unisono"

CompilerSet makeprg=unisono\ check\ %:S
CompilerSet errorformat=%Eerror[%s]:\ %m,%Wwarning[%s]:\ %m,%Inote[%s]:\ %m,%Iperformance[%s]:\ %m,%C\ %#-->\ %f:%l:%c,%-G%.%#
