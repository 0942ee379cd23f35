import { spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { compareReadings, type Readings } from '../test/support/authorize/sdk-readings.ts'
import { createSockets } from '../test/support/sockets.ts'
import type { Python } from './python.ts'

const MUTATIONS = 1500

/** Compares what rules evaluate with what the server at `url` parses, through a proxy. */
export async function readingsOf(url: string): Promise<Readings> {
  const sockets = createSockets()
  try {
    return await compareReadings(sockets, url, MUTATIONS)
  } finally {
    await sockets.closeAll()
  }
}

export const readingText = ({ forwarded, refused }: Readings): string =>
  `${forwarded} calls parsed as rules evaluated them, ${refused} refused`

/** The same with a server of the Python SDK. */
export async function readingsOfPython({ executable }: Python): Promise<Readings> {
  const child = spawn(executable, [path.join(import.meta.dirname, 'echo-server.py')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()
    const { url } = z.object({ url: z.string() }).parse(JSON.parse(String(value)))
    return await readingsOf(url)
  } finally {
    child.kill('SIGKILL')
  }
}
