import { spawnSync } from 'node:child_process'
import path from 'node:path'
import type { Peer } from './peers.ts'
import { sdkPeer } from './sdk.ts'

const SOURCES = path.join(import.meta.dirname, 'go-sdk')
/** Downloading and compiling, on a busy machine. */
const BUILD_MS = 300_000

const go = (args: readonly string[], timeout: number) =>
  spawnSync('go', args, { cwd: SOURCES, encoding: 'utf8', timeout, env: { ...process.env, GOTOOLCHAIN: 'local' } })

/** The official SDK for Go. */
export const goPeer = (say: (line: string) => void): Peer =>
  sdkPeer(say, {
    language: 'Go',
    servers: [
      { kind: 'sessions', tellsProgress: true },
      { kind: 'stateless', tellsProgress: true },
    ],
    echo: '/echo',
    missing() {
      if (go(['version'], 10_000).status !== 0) return 'Go is not installed'
      return go(['mod', 'download'], BUILD_MS).status === 0 ? undefined : 'a proxy of Go modules can not be reached'
    },
    build(directory) {
      const bin = path.join(directory, 'peers')
      const built = go(['build', '-mod=readonly', '-o', bin, '.'], BUILD_MS)
      if (built.status !== 0) throw new Error(`go build did not work: ${built.stderr.slice(-500)}`)
      return [bin]
    },
  })
