export { command, CommandFailed, loggedCommand } from './command.ts'
export { ownCommand, printedPath } from './own-command.ts'
export { labConfig } from './lab-config.ts'
export { serve } from './serve.ts'
