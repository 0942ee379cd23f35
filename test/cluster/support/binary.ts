import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, openSync, closeSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const KUBERNETES = { version: 'v1.35.4', major: '1', minor: '35' }
const root = path.join(import.meta.dirname, '../../..')
const kept = path.join(
  tmpdir(),
  `extauth-kube-${KUBERNETES.version}-${createHash('sha256').update(root).digest('hex').slice(0, 8)}`,
)
const ready = path.join(root, '../shared/kube')

interface Program {
  readonly name: string
  /** Environment variable that names a ready one. */
  readonly variable: string
  /** Folder of its Go module. */
  readonly sources: string
  readonly flags: readonly string[]
  readonly duration: string
}

const stamp = 'k8s.io/component-base/version'

export const CONTROL_PLANE: Program = {
  name: 'control-plane',
  variable: 'EXTAUTH_CONTROL_PLANE',
  sources: path.join(root, 'test/cluster/control-plane'),
  flags: [
    '-ldflags',
    `-s -w -X ${stamp}.gitVersion=${KUBERNETES.version} -X ${stamp}.gitMajor=${KUBERNETES.major} -X ${stamp}.gitMinor=${KUBERNETES.minor}`,
  ],
  duration: 'about ten minutes on two cores the first time',
}

export const CRDCHECK: Program = {
  name: 'crdcheck',
  variable: 'EXTAUTH_CRDCHECK',
  sources: path.join(root, 'test/cluster/crdcheck'),
  flags: ['-ldflags', '-s -w'],
  duration: 'half a minute',
}

export const GITOPSCHECK: Program = {
  name: 'gitopscheck',
  variable: 'EXTAUTH_GITOPSCHECK',
  sources: path.join(root, 'test/cluster/gitops'),
  flags: ['-ldflags', '-s -w'],
  duration: 'some minutes the first time',
}

/**
 * Where the program is: as the environment says, else unpacked from a ready-made one beside the project, else built from the
 * Go module that the project keeps. Undefined when `build` is false and it would have to be built.
 */
export function findProgram(program: Program, build = true): string | undefined {
  const named = process.env[program.variable]
  if (named !== undefined && named !== '') {
    if (!existsSync(named)) throw new Error(`${program.variable} names ${named}, which is not there`)
    return named
  }
  const binary = path.join(kept, program.name)
  if (existsSync(binary)) return binary
  const packed = path.join(ready, `${program.name}-linux-amd64.xz`)
  if (process.platform === 'linux' && process.arch === 'x64' && existsSync(packed)) return unpack(packed, binary)
  return build ? buildFrom(program, binary) : undefined
}

function unpack(packed: string, binary: string): string {
  mkdirSync(kept, { recursive: true })
  const partial = `${binary}.${process.pid}`
  const out = openSync(partial, 'w')
  try {
    execFileSync('xz', ['-dc', packed], { stdio: ['ignore', out, 'inherit'] })
  } finally {
    closeSync(out)
  }
  chmodSync(partial, 0o755)
  renameSync(partial, binary)
  return binary
}

function buildFrom(program: Program, binary: string): string {
  process.stderr.write(`building ${program.name} with go: ${program.duration}\n`)
  mkdirSync(kept, { recursive: true })
  execFileSync('go', ['build', '-trimpath', '-o', binary, ...program.flags, '.'], {
    cwd: program.sources,
    stdio: 'inherit',
  })
  return binary
}
