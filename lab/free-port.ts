import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that kernels give away by themselves (Linux from 32768, others from 49152). */
const [FIRST, END] = [20_000, 30_000]
const ATTEMPTS = 100

/**
 * A port of 127.0.0.1 that was free a moment ago, for what has to know its own address before it listens. It is none of those
 * that the kernel gives to connections and to `listen(0)`: between now and the moment of use it would give one away.
 *
 * @throws {Error} when a hundred ports drawn at random were all taken
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(FIRST, END)
    if (await isFree(port)) return port
  }
  throw new Error(`no free port of 127.0.0.1 from ${FIRST} to ${END - 1}`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
