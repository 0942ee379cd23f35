import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { processIo } from '../../../src/compose/io.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const before = new Map(SIGNALS.map((signal) => [signal, process.listeners(signal)]))
const exit = vi.spyOn(process, 'exit')

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  exit.mockImplementation(() => undefined as never)
})
afterEach(() => {
  vi.useRealTimers()
  exit.mockReset()
  for (const signal of SIGNALS)
    for (const listener of process.listeners(signal))
      if (before.get(signal)?.includes(listener) !== true) process.off(signal, listener)
})

describe('a signal', () => {
  it.each(SIGNALS)(
    '%s that arrives twice at once, as npm forwards signals of the terminal, counts once',
    async (signal) => {
      const { stop } = processIo()
      process.emit(signal)
      expect(await stop).toBe(signal)
      vi.advanceTimersByTime(300)
      process.emit(signal)
      expect(exit).not.toHaveBeenCalled()
    },
  )

  it('that comes again later ends the process at once', async () => {
    const { stop } = processIo()
    process.emit('SIGINT')
    await stop
    process.emit('SIGINT')
    vi.advanceTimersByTime(501)
    process.emit('SIGINT')
    expect(exit).toHaveBeenCalledExactlyOnceWith(1)
  })
})
