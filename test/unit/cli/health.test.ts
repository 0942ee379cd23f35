import { createServer, type RequestListener, type Server } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { runHealth } from '../../../src/cli/health.ts'
import { processIo } from '../../../src/compose/index.ts'

let server: Server | undefined
let folder: string | undefined
afterEach(async () => {
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
  if (folder !== undefined) rmSync(folder, { recursive: true })
  server = folder = undefined
})
const answer: RequestListener = ({ url }, response) =>
  void response.writeHead(url === '/health' ? 200 : 503, { connection: 'close' }).end()
const listen = async (on: string | number): Promise<number> => {
  const made = createServer(answer)
  server = made
  await new Promise<void>((resolve) =>
    typeof on === 'number' ? made.listen(on, '127.0.0.1', resolve) : made.listen(on, resolve),
  )
  const address = made.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
async function run(...argv: string[]) {
  let [stdout, stderr] = ['', '']
  const io = {
    ...processIo(),
    env: {},
    stdout: (text: string) => void (stdout += text),
    stderr: (text: string) => void (stderr += text),
  }
  return { code: await runHealth(argv, io), stdout, stderr }
}

describe('extauth health', () => {
  it('is 0 for a healthy process and 1 for one that is not ready', async () => {
    const port = await listen(0)
    expect(await run('--admin', `127.0.0.1:${port}`)).toEqual({ code: 0, stdout: '/health: 200\n', stderr: '' })
    expect(await run('--admin', `:${port}`, '--ready')).toEqual({ code: 1, stdout: '/readiness: 503\n', stderr: '' })
  })

  it('asks over a Unix socket', async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'extauth-health-'))
    await listen(path.join(folder, 's'))
    expect((await run('--admin', `unix:${folder}/s`)).code).toBe(0)
  })

  it('names the address that does not answer', async () => {
    const port = await listen(0)
    await new Promise((resolve) => server?.close(resolve))
    server = undefined
    const { code, stderr } = await run('--admin', `127.0.0.1:${port}`)
    expect(code).toBe(1)
    expect(stderr).toContain(`no response from 127.0.0.1:${port}/health`)
  })
})
