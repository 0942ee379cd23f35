import { extauth } from '../process.ts'
import { configFolder } from '../run.ts'
import type { StartedProxy } from './world.ts'

/** A process on one address, which can be started again with the same files. */
export function createProgram() {
  let begin = async (): Promise<{ readonly admin: string }> => Promise.reject(new Error('not started'))
  let end = async (): Promise<void> => undefined
  const start = async (files: Readonly<Record<string, string | Buffer>>, listen: string): Promise<StartedProxy> => {
    const { directory, write, remove } = await configFolder(files)
    begin = async () => {
      const where = ['--config', directory, '--secrets-dir', `${directory}/secrets`, '--listen', listen]
      const running = extauth(['proxy', ...where, '--admin', '127.0.0.1:0'])
      end = async () => {
        running.process.kill('SIGKILL')
        await running.ended
      }
      return (await running.line('listening')) as { admin: string }
    }
    const { admin: adminUrl } = await begin()
    const close = async (): Promise<void> => {
      await end()
      await remove()
    }
    return { url: `http://${listen}`, adminUrl, write, close, reload: () => Promise.reject(new Error('not here')) }
  }
  return { start, restart: async () => (await end(), await begin()) }
}
