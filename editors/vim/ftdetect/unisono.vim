autocmd BufRead,BufNewFile *.uni setfiletype unisono
