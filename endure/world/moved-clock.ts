import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Loaded into a replica before the program (`--import`): on SIGUSR2 its clock is off by the milliseconds in the file that
 * `ENDURE_CLOCK_FILE` names, and says so by a file beside it, as after a change of the machine's time. What counts durations goes on as it did.
 */
const real = Date
const state = { off: 0 }

globalThis.Date = new Proxy(real, {
  construct: (target, args: [], newTarget) =>
    Reflect.construct(target, args.length === 0 ? [real.now() + state.off] : args, newTarget) as object,
  apply: () => new real(real.now() + state.off).toString(),
  get: (target, key, receiver) => (key === 'now' ? now : (Reflect.get(target, key, receiver) as unknown)),
})

function now(): number {
  return real.now() + state.off
}

process.on('SIGUSR2', () => {
  const file = process.env['ENDURE_CLOCK_FILE'] ?? ''
  state.off = Number(readFileSync(file, 'utf8'))
  writeFileSync(`${file}.taken`, '')
})
