import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const MODULE = 'helm.sh/helm/v3/cmd/helm@v3.22.0'
const kept = path.join(tmpdir(), 'extauth-helm')

/**
 * Where Helm is: `EXTAUTH_HELM`, else the one on the path, else one that was built before; with `build` it is built with Go
 * from its published module (five minutes the first time). Undefined where there is none.
 */
export function findHelm(build: boolean): string | undefined {
  const named = process.env['EXTAUTH_HELM']
  if (named !== undefined && named !== '') return named
  if (spawnSync('helm', ['version']).status === 0) return 'helm'
  const binary = path.join(kept, 'helm')
  if (existsSync(binary)) return binary
  if (!build) return undefined
  process.stderr.write('building helm with go: five minutes the first time\n')
  mkdirSync(kept, { recursive: true })
  execFileSync('go', ['install', MODULE], { stdio: 'inherit', env: { ...process.env, GOBIN: kept } })
  return binary
}
