import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1'
const DOWNLOAD_MS = 240_000
const JAVA = 17

/** Required files of Maven's registry, with checksums (SHA-256 in hex by name), and no others. */
export interface Wanted {
  /** Goal and options of Maven's dependency plugin that put the files into `outputDirectory`. */
  readonly goal: 'copy' | 'copy-dependencies'
  readonly options: readonly string[]
  readonly checksums: ReadonlyMap<string, string>
}

export interface FromMaven {
  /** Why they can't be had here, and what would help; undefined where they can. */
  missing(): string | undefined
  /** The folder with the files, in a temporary place. Throws where they can't be had, or are others. */
  folder(): string
}

/** Files of Maven's registry: those that its local repository has, without a network, and else downloaded, once. */
export function fromMaven({ goal, options, checksums }: Wanted): FromMaven {
  let fetched: string | undefined
  const fetch = (): string | undefined => {
    const folder = mkdtempSync(path.join(tmpdir(), 'extauth-maven-'))
    const args = ['-q', '-B', `${PLUGIN}:${goal}`, ...options, `-DoutputDirectory=${folder}`]
    for (const all of [['-o', ...args], args])
      if (spawnSync('mvn', all, { stdio: 'ignore', timeout: DOWNLOAD_MS }).status === 0) return folder
    return undefined
  }
  return {
    missing() {
      const why = missingJava()
      if (why !== undefined) return why
      fetched ??= fetch()
      return fetched === undefined
        ? 'the Maven registry does not answer, and its local repository lacks some'
        : undefined
    },
    folder() {
      fetched ??= fetch()
      if (fetched === undefined) throw new Error(`mvn ${goal} ${options.join(' ')} did not work`)
      const wrong = differences(fetched, checksums)
      if (wrong.length > 0) throw new Error(`what Maven gives is other than what is known here: ${wrong.join(', ')}`)
      return fetched
    },
  }
}

function missingJava(): string | undefined {
  const ask = (command: string, args: readonly string[]) =>
    spawnSync(command, args, { encoding: 'utf8', timeout: 60_000 })
  // On standard error: openjdk version "17.0.15" 2025-04-15
  const { status, stderr } = ask('java', ['-version'])
  const version = Number(/version "(\d+)/.exec(stderr ?? '')?.[1])
  if (status !== 0 || !(version >= JAVA))
    return `there is no java of release ${JAVA} or later; in Debian: default-jdk-headless`
  return ask('mvn', ['--version']).status === 0 ? undefined : 'there is no mvn; in Debian: maven'
}

/** Files of the folder that are missing, unexpected, or differ from their checksum. */
function differences(folder: string, checksums: ReadonlyMap<string, string>): readonly string[] {
  const found = readdirSync(folder)
  const isRight = (name: string): boolean =>
    createHash('sha256')
      .update(readFileSync(path.join(folder, name)))
      .digest('hex') === checksums.get(name)
  const missing = [...checksums.keys()].filter((name) => !found.includes(name))
  return [...missing, ...found.filter((name) => !isRight(name))]
}

/** Lines as sha256sum writes them. */
export const checksumsOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .trim()
      .split('\n')
      .map((line) => {
        const [sum = '', name = ''] = line.split(/ [ *]/)
        return [name, sum]
      }),
  )
