import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { ANY_LAB_PORT } from '../../support/lab-ports.ts'

const BIN = path.join(import.meta.dirname, '../../../bin')
const directory = mkdtempSync(path.join(tmpdir(), 'extauth-old-node-'))
const started: Running[] = []
afterAll(() => {
  // Those of a test that failed; the other Node ends with them.
  for (const { process: child } of started) child.kill('SIGKILL')
  rmSync(directory, { recursive: true })
})

/** Preloaded, it makes a Node say that it is an old one; one that it starts is what it is. npm reads the other place. */
const OLD = path.join(directory, 'old.cjs')
writeFileSync(
  OLD,
  "Object.defineProperty(process.versions, 'node', { value: '18.19.0' })\nObject.defineProperty(process, 'version', { value: 'v18.19.0' })\n",
)
/** … and that it brought no other along. */
const ALONE = path.join(directory, 'alone.cjs')
writeFileSync(ALONE, `require(${JSON.stringify(OLD)})\nObject.defineProperty(process, 'arch', { value: 'sparc' })\n`)

function start(preload: string, script: string, ...args: string[]): Running {
  const running = extauth(args, { node: ['--require', preload], program: path.join(BIN, script) })
  started.push(running)
  return running
}

/** A lab under an old Node, which serves and keeps a copy of its configuration as long as it does. */
async function lab() {
  const running = start(OLD, 'extauth.cjs', 'lab', ...ANY_LAB_PORT)
  await running.shows('Stop with Ctrl-C')
  const config = /^ {2}config +(\S+)/m.exec(running.stdout())?.[1] ?? ''
  expect(existsSync(config)).toBe(true)
  return { ...running, config }
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('on a Node that is too old', () => {
  it('extauth runs with the Node that its package brought', async () => {
    const { stdout, ended } = start(OLD, 'extauth.cjs', 'version')
    expect(await ended).toBe(0)
    expect(stdout()).toMatch(/^mcp-extauth \S+ \(Node 24\./)
  })

  it('npm installs without warnings about packages that require a newer one', async () => {
    const folder = path.join(directory, 'install')
    for (const name of ['package.json', 'package-lock.json', '.npmrc'])
      cpSync(path.join(BIN, '..', name), path.join(folder, name))
    const npm = spawn('npm', ['ci', '--dry-run', '--offline', '--ignore-scripts'], {
      cwd: folder,
      // npm's own environment variables are removed.
      env: {
        ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
        NODE_OPTIONS: `--require ${OLD}`,
      },
    })
    let said = ''
    npm.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    expect(await once(npm, 'close')).toEqual([0, null])
    expect(said).toBe('')
  }, 60_000)

  it('its exit codes are those of the other one', async () => {
    expect(await start(OLD, 'extauth.cjs', 'nothing').ended).toBe(2)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('%s reaches the other one, which ends as it should', async (signal) => {
    const { process: child, stderr, ended } = await lab()
    child.kill(signal)
    expect(await ended).toBe(0)
    expect(stderr()).toBe('')
  })

  it('the other one ends in good order when this one is killed', async () => {
    const { process: child, config } = await lab()
    const [inner = 0] = childrenOf(child.pid ?? 0)
    expect(inner).toBeGreaterThan(0)
    child.kill('SIGKILL')
    await expect.poll(() => isThere(inner), { timeout: 15_000 }).toBe(false)
    expect(existsSync(config)).toBe(false)
  })

  it('that brought none says what is needed', async () => {
    const { stderr, ended } = start(ALONE, 'extauth.cjs', 'version')
    expect(await ended).toBe(2)
    expect(stderr()).toMatch(/needs Node 24\.12 or newer/)
  })

  it('a script of the checkout says how to start it', async () => {
    const { stderr, ended } = start(OLD, 'require-node.cjs')
    expect(await ended).toBe(2)
    expect(stderr()).toContain('npm start')
  })
})
