import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LineWriter } from '../../../src/report/line-writer.ts'

let directory: string
let open: number[]
beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'extauth-lines-'))
  open = []
})
afterEach(() => {
  for (const fd of open) closeSync(fd)
  rmSync(directory, { recursive: true, force: true })
})

/** A pipe in this process: what is written to it is only read when the test says so. */
function pipe() {
  const fifo = path.join(directory, 'pipe')
  execFileSync('mkfifo', [fifo])
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(fifo, constants.O_WRONLY)
  open.push(reader, writer)
  const buffer = Buffer.alloc(1024 * 1024)
  const read = (): string => {
    let text = ''
    try {
      for (let bytes = readSync(reader, buffer); bytes > 0; bytes = readSync(reader, buffer))
        text += buffer.toString('latin1', 0, bytes)
    } catch {
      // Nothing more is there now.
    }
    return text
  }
  const leave = (): void => {
    open.splice(open.indexOf(reader), 1)
    closeSync(reader)
  }
  return { writer, read, leave }
}

function start(fd: number) {
  const lost: number[] = []
  const writer = new LineWriter(fd, { renderLost: (lines) => `lost ${lines}\n`, onLost: (lines) => lost.push(lines) })
  return { writer, lost: () => lost.reduce((sum, lines) => sum + lines, 0) }
}

const LINE = `${'x'.repeat(999)}\n`

describe('lines to a pipe', () => {
  it('that is full wait for its reader, and none is lost', async () => {
    const { writer: fd, read } = pipe()
    const { writer, lost } = start(fd)
    for (let line = 0; line < 200; line++) writer.write(LINE)
    writer.flush()
    let text = ''
    await vi.waitFor(() => expect((text += read()).length).toBe(200 * LINE.length), 10_000)
    expect(text).toBe(LINE.repeat(200))
    expect(lost()).toBe(0)
  })

  it('that are not read are dropped beyond a limit, counted, and reported when there is a reader again', async () => {
    const { writer: fd, read } = pipe()
    const { writer, lost } = start(fd)
    for (let line = 0; line < 5_000; line++) {
      writer.write(LINE)
      writer.flush()
    }
    expect(lost()).toBeGreaterThan(3_500)
    let text = ''
    await vi.waitFor(() => expect((text += read())).toContain('lost'), 10_000)
    writer.write('after\n')
    writer.flush()
    await vi.waitFor(() => expect((text += read())).toContain('after'), 10_000)
    const whole = text.split(LINE).length - 1
    expect(text).toContain(`lost ${lost()}\n`)
    expect(whole + lost()).toBe(5_000)
    expect(text.replaceAll(LINE, '')).toBe(`lost ${lost()}\nafter\n`)
  })

  it('whose reader has gone are dropped and counted', () => {
    const { writer: fd, leave } = pipe()
    const { writer, lost } = start(fd)
    leave()
    for (let line = 0; line < 100; line++) writer.write(LINE)
    writer.finish()
    expect(lost()).toBe(100)
  })

  it('wait half a second at the very end, not longer', () => {
    const { writer: fd, read } = pipe()
    const { writer, lost } = start(fd)
    for (let line = 0; line < 200; line++) writer.write(LINE)
    const beganMs = performance.now()
    writer.finish()
    const tookMs = performance.now() - beganMs
    expect(tookMs).toBeGreaterThan(400)
    expect(tookMs).toBeLessThan(5_000)
    expect(read().split('\n').length - 1 + lost()).toBeGreaterThanOrEqual(199)
  })
})
