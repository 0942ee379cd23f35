import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { startLab } from '../lab/cli/lab-compose.ts'
import type { Python } from './python.ts'

const ROUTES = ['unauthenticated', 'header-injection', 'bearer-token', 'token-exchange', 'cloud-sts']
/** As the client calls the eras: with a handshake, and whatever both can. */
const MODES = ['legacy', 'auto']
const ANY = { proxy: 0, admin: 0, identity: 0, identityTls: 0, backend: 0, sts: 0, workspace: 0, metadata: 0 }
const BIN = path.join(import.meta.dirname, '..', 'bin', 'extauth.cjs')
const LIMIT_MS = 300_000

/** Problems of the official Python client with `extauth stdio` on the lab's routes, one line each. */
export async function askMcpClient(
  python: Python,
): Promise<{ readonly version: string; readonly wrong: readonly string[]; readonly tried: number }> {
  const silent = (): void => undefined
  const lab = await startLab({ ports: ANY, log: { debug: silent, info: silent, warn: silent, error: silent } })
  const directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-peers-mcp-'))
  try {
    const token = path.join(directory, 'token')
    const claims = { sub: 'alice', groups: ['admins', 'dev'], ttlSeconds: 600 }
    await writeFile(token, await lab.identity.mint(claims), { mode: 0o600 })
    const cases = ROUTES.flatMap((route) =>
      MODES.map((mode) => ({
        name: `${route} (${mode})`,
        mode,
        command: process.execPath,
        args: [BIN, 'stdio', '--config', lab.configDirectory, '--route', route, '--sts-endpoint', lab.sts.url].concat([
          '--token-file',
          token,
          '--log-level',
          'silent',
        ]),
      })),
    )
    const said = await run(python.executable, cases)
    return { ...(JSON.parse(said) as { version: string; wrong: string[] }), tried: cases.length }
  } finally {
    await rm(directory, { recursive: true })
    await lab.close()
  }
}

/** The lab runs in this process, so that the script must not be waited for in a way that stops it. */
function run(executable: string, cases: readonly object[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const script = path.join(import.meta.dirname, 'tools.py')
    const child = spawn(executable, [script], { stdio: ['pipe', 'pipe', 'pipe'], timeout: LIMIT_MS })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve(stdout)
      else reject(new Error(`the Python MCP client does not run: ${stderr.slice(-500)}`))
    })
    child.stdin.end(JSON.stringify(cases))
  })
}
