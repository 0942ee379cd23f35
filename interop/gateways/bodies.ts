import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import os from 'node:os'
import path from 'node:path'

const LARGE_BYTES = 64 * 1024 * 1024
const SMALL_BYTES = 3 * 1024 * 1024
const LIMIT_MS = 120_000

/**
 * Sends requests of curl in its variants, and an upgrade if supported, to this route. Returns the problems, one line each.
 * `hasSmallLimit`: a server behind the proxy rejects a body before it has arrived.
 */
export async function askInManyWays(
  route: string,
  { hasSmallLimit = false, upgrades = true } = {},
): Promise<readonly string[]> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-bodies-'))
  try {
    const [large, small] = [path.join(directory, 'large'), path.join(directory, 'small')]
    const [largeBytes, smallBytes] = [Buffer.alloc(LARGE_BYTES, 'ab'), Buffer.alloc(SMALL_BYTES, 'cd')]
    await Promise.all([writeFile(large, largeBytes), writeFile(small, smallBytes)])
    const [gotLarge, gotSmall] = [largeBytes, smallBytes].map(
      (bytes) => `x-got: POST ${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`,
    )
    const upload = ['-H', 'content-type: application/octet-stream', '--data-binary']
    const ways: readonly (readonly [
      name: string,
      args: readonly string[],
      expected: readonly (string | undefined)[],
    ])[] = [
      ['64 MiB out', [...upload, `@${large}`, route], ['HTTP/1.1 200', gotLarge, 'size 3']],
      ['64 MiB back', [`${route}?bytes=${LARGE_BYTES}`], ['HTTP/1.1 200', `size ${LARGE_BYTES + 3}`]],
      ['chunks', ['-H', 'transfer-encoding: chunked', ...upload, `@${small}`, route], ['HTTP/1.1 200', gotSmall]],
      [
        '100-continue',
        ['-H', 'expect: 100-continue', '--expect100-timeout', '60', ...upload, `@${small}`, route],
        ['HTTP/1.1 100', 'HTTP/1.1 200', gotSmall],
      ],
      ['HTTP/1.0', ['--http1.0', ...upload, `@${small}`, route], ['200', gotSmall, 'size 3']],
      ['HEAD', ['-I', route], ['HTTP/1.1 200', 'x-got: HEAD 0', 'size 0']],
      ...(hasSmallLimit ? [['an early answer', [...upload, `@${large}`, `${route}/small`], ['413']] as const] : []),
    ]
    const wrong: string[] = []
    for (const [name, args, expected] of ways) {
      const said = await curl(args)
      const missing = expected.filter((text) => text === undefined || !said.toLowerCase().includes(text.toLowerCase()))
      if (missing.length > 0) wrong.push(`${name}: ${missing.join(', ')} is missing in ${said.slice(0, 300)}`)
    }
    const echoed = upgrades ? await upgraded(new URL(route)) : undefined
    if (echoed !== undefined) wrong.push(`upgrade: ${echoed}`)
    return wrong
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Heads of all answers, and `size BYTES` of the last body. */
function curl(args: readonly string[]): Promise<string> {
  const all = ['-s', '-S', '--max-time', '100', '-o', '/dev/null', '-D', '-', '-w', 'size %{size_download}\n', ...args]
  return new Promise((resolve, reject) => {
    const child = spawn('curl', all, { stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS })
    let said = ''
    const hear = (data: Buffer): void => void (said += data.toString('latin1'))
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('error', reject).once('close', () => resolve(said))
  })
}

/** Switches to a protocol that echoes; what went wrong, or undefined. */
function upgraded({ hostname, port, pathname }: URL): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    let said = ''
    const over = (what: string | undefined): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(what)
    }
    const timer = setTimeout(() => over(`no echo: ${said.slice(0, 300)}`), 20_000)
    socket.on('error', (error) => over(error.message))
    socket.on('close', () => over(`closed: ${said.slice(0, 300)}`))
    socket.on('data', (data: Buffer) => {
      const before = said
      said += data.toString('latin1')
      const isSwitched = (text: string): boolean => text.startsWith('HTTP/1.1 101') && text.includes('\r\n\r\n')
      if (!isSwitched(before) && isSwitched(said)) socket.write('hello')
      if (isSwitched(said) && said.endsWith('\r\n\r\nhello')) over(undefined)
    })
    socket.write(
      `GET ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n`,
    )
  })
}
