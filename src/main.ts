import { EXIT, main, processIo } from './commands/index.ts'

const io = processIo()
main(process.argv.slice(2), io).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    // Anything that arrives here is a bug; its text may quote input, so only its name and place are shown.
    const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: '' }
    io.stderr(`extauth: unexpected ${name}\n${(stack ?? '').split('\n').slice(1).join('\n')}\n`)
    process.exitCode = EXIT.failed
  },
)

/** Output that nobody reads would keep a server alive that was stopped; so long its reader may take for the last of it. */
const LAST_OUTPUT_MS = 1000
void io.stop.then(() => setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref())
