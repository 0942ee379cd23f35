import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const FOLDERS = ['/usr/bin', '/usr/local/bin']
const PACKAGES = ['redis-server', 'redis-sentinel']
/** Debian's policy script for service starts: 101 forbids them (invoke-rc.d(8)). */
const POLICY = '/usr/sbin/policy-rc.d'

const find = (name: string) => FOLDERS.map((folder) => `${folder}/${name}`).find((path) => existsSync(path))

let installing: Promise<void> | undefined

/**
 * The path of `redis-server`, or what `EXTAUTH_TEST_REDIS` names (a `valkey-server`, another version). Where there is none it is
 * installed from Debian, when this process may do that; otherwise throws and says what to do.
 */
export async function redisServer(): Promise<string> {
  const wanted = process.env['EXTAUTH_TEST_REDIS']
  if (wanted !== undefined) return wanted
  if (find('redis-server') === undefined) await (installing ??= install())
  const path = find('redis-server')
  if (path === undefined) throw new Error(`these tests need a Redis server: apt-get install ${PACKAGES.join(' ')}`)
  return path
}

async function install(): Promise<void> {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return
  // A single process installs, others of a parallel run wait for it.
  const lock = '/tmp/extauth-test-redis-install'
  if ((await mkdir(lock).catch(() => 'taken')) === 'taken') return waitFor(() => find('redis-server') !== undefined)
  const hadPolicy = existsSync(POLICY)
  try {
    if (!hadPolicy) await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    await run('apt-get', ['update', '-qq'], { env })
    await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...PACKAGES], { env })
  } finally {
    if (!hadPolicy) await rm(POLICY, { force: true })
    await rm(lock, { recursive: true, force: true })
  }
}

async function waitFor(isThere: () => boolean): Promise<void> {
  for (let tries = 0; tries < 600 && !isThere(); tries += 1) await new Promise((resolve) => setTimeout(resolve, 200))
}
