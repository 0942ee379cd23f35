import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { checksumsOf, fromMaven } from './maven.ts'
import type { Peer } from './peers.ts'
import { sdkPeer } from './sdk.ts'

const SOURCES = path.join(import.meta.dirname, 'java-sdk')
const BUILD_MS = 300_000

/** The official SDK for Java on the servlets of Tomcat, compiled here. */
export function javaPeer(say: (line: string) => void): Peer {
  const jars = fromMaven({
    goal: 'copy-dependencies',
    options: ['-f', path.join(SOURCES, 'pom.xml')],
    checksums: checksumsOf(readFileSync(path.join(SOURCES, 'jars.sha256'), 'utf8')),
  })
  return sdkPeer(say, {
    language: 'Java',
    servers: [
      { kind: 'sessions', tellsProgress: true },
      // Without a session, the SDK gives tools no channel for progress.
      { kind: 'stateless', tellsProgress: false },
    ],
    missing() {
      const isThere = spawnSync('javac', ['-version'], { stdio: 'ignore', timeout: 60_000 }).status === 0
      return isThere ? jars.missing() : 'there is no javac; in Debian: default-jdk-headless and maven'
    },
    build(directory) {
      const classes = path.join(directory, 'classes')
      const tomcat = path.join(directory, 'tomcat')
      for (const folder of [classes, tomcat]) mkdirSync(folder)
      const others = path.join(jars.folder(), '*')
      const args = ['-cp', others, '-d', classes, path.join(SOURCES, 'Peers.java')]
      const { status, stderr } = spawnSync('javac', args, { encoding: 'utf8', timeout: BUILD_MS })
      if (status !== 0) throw new Error(`javac did not work: ${stderr.slice(-500)}`)
      const classPath = [classes, others].join(path.delimiter)
      return ['java', '-Xmx256m', `-Djava.io.tmpdir=${directory}`, '-cp', classPath, 'Peers', tomcat]
    },
  })
}
