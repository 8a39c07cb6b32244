-- Neovim runs LuaJIT and provides the global `vim`.
std = 'luajit'
max_line_length = 110
globals = { 'vim' }
