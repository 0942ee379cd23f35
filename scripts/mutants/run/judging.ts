import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { Answer, Question } from './judge.ts'

const PROGRAM = path.join(import.meta.dirname, 'judge.ts')

/** The result of running tests; tests that hang have failed. */
export type Outcome = Answer

/** Asks a judge in `directory`; a judge that hangs or ends is replaced by the next question. */
export class Judging {
  readonly #directory: string
  #judge: Promise<ChildProcess> | undefined
  #pid: number | undefined

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Runs tests one after the other until one fails, for `deadlineMs` at most. */
  async ask(question: Question, deadlineMs: number): Promise<Outcome> {
    const startedMs = performance.now()
    const judge = await (this.#judge ??= this.#start())
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const fail = (name: string): void => {
      this.close()
      const [test = ''] = question.tests
      resolve({ tookMs: performance.now() - startedMs, failed: { test, name, isLoaded: true } })
    }
    const onExit = (): void => fail('the process that runs the tests ended')
    const timer = setTimeout(() => fail(`not done after ${Math.round(deadlineMs / 1000)} s`), deadlineMs)
    judge.once('message', resolve)
    judge.once('exit', onExit)
    judge.send(question)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      judge.off('message', resolve)
      judge.off('exit', onExit)
    }
  }

  /** Ends the judge, its workers and what they started. */
  close(): void {
    this.#judge = undefined
    const pid = this.#pid
    this.#pid = undefined
    if (pid === undefined) return
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // It has exited.
    }
  }

  async #start(): Promise<ChildProcess> {
    const judge = fork(PROGRAM, {
      cwd: this.#directory,
      env: { ...process.env, CI: 'true', NO_COLOR: '1' },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // A group of its own, so that workers that hang end with it.
      detached: true,
    })
    this.#pid = judge.pid
    let errors = ''
    judge.stderr?.on('data', (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-2000)))
    const ended = once(judge, 'exit').then(() => {
      throw new Error(`no judge could be started: ${errors}`)
    })
    await Promise.race([once(judge, 'message'), ended])
    ended.catch(() => undefined)
    return judge
  }
}
