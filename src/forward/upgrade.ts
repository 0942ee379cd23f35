import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ParsedHeaders } from '../http/index.ts'
import { credentialTexts } from './credential-texts.ts'
import type { ExchangeControl } from '../net/index.ts'
import { Relay } from './relay.ts'

const HTTP_SWITCHING = 101

/** Pipes both directions until both have ended. Each ends on its own; an error of one destroys the other. */
const join = async (client: Duplex, backend: Duplex): Promise<void> => {
  const ends = [
    [client, backend],
    [backend, client],
  ] as const
  await Promise.all(
    ends.map(([from, to]) => {
      from.on('error', () => to.destroy())
      from.pipe(to)
      return new Promise<void>((resolve) => {
        from.once('close', () => {
          // A side that closed without an end was aborted.
          if (!from.readableEnded) to.destroy()
          resolve()
        })
      })
    }),
  )
}

/** An upgraded connection: on 101 both sockets are joined, other responses are forwarded. */
export class UpgradeRelay extends Relay {
  /**
   * No upgrade. The connection is no longer read, so a disconnect would be missed: remaining data are discarded to
   * detect it.
   */
  override onResponseStart(controller: ExchangeControl, status: number, headers: ParsedHeaders): void {
    const client = this.response.socket
    if (status >= 200 && client !== null) client.once('end', () => client.destroy()).resume()
    super.onResponseStart(controller, status, headers)
  }

  /** Called only for requested upgrades. */
  onRequestUpgrade(_controller: ExchangeControl, _status: number, headers: ParsedHeaders, socket: Duplex): void {
    const { response } = this
    const client = response.socket
    if (client === null || client.destroyed) {
      socket.destroy()
      return this.settle(HTTP_SWITCHING, true)
    }
    const lines = [`HTTP/1.1 ${HTTP_SWITCHING} ${STATUS_CODES[HTTP_SWITCHING]}`, 'connection: upgrade']
    const protocol = headers['upgrade']
    if (typeof protocol === 'string') lines.push(`upgrade: ${protocol}`)
    const flat = this.headersFor(
      this.route.responsePolicy(headers, HTTP_SWITCHING, credentialTexts(this.sealed)),
      undefined,
    )
    this.inbound.trace?.received(HTTP_SWITCHING, headers)
    this.inbound.trace?.responded(HTTP_SWITCHING, flat)
    for (let index = 0; index + 1 < flat.length; index += 2) lines.push(`${flat[index]}: ${flat[index + 1]}`)
    // From here on, the connection is no longer HTTP.
    response.detachSocket()
    this.leaveResponse()
    client.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
    this.inbound.onStream(() => {
      client.end()
      socket.end()
      // Data of this backend have no receiver and may never end.
      client.once('close', () => socket.destroy())
    })
    void join(client, socket).then(() => this.settle(HTTP_SWITCHING, false))
  }
}
