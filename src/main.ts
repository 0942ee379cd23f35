import { EXIT, main, processIo } from './commands/index.ts'

const io = processIo()
try {
  process.exitCode = await main(process.argv.slice(2), io)
} catch (error) {
  // Anything that arrives here is a bug; its text may quote input, so only its name and place are shown.
  const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: '' }
  io.stderr(`extauth: unexpected ${name}\n${(stack ?? '').split('\n').slice(1).join('\n')}\n`)
  process.exitCode = EXIT.failed
}
