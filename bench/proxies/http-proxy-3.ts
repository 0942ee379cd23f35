import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Peer {
  createProxyServer(options: object): {
    web(request: IncomingMessage, response: ServerResponse): void
    on(event: 'error', listener: (error: Error, request: IncomingMessage, response: ServerResponse) => void): void
  }
}

// Not a literal, so that the types are not needed where only the sources are checked.
const name: string = 'http-proxy-3'
const peer = (await import(name)) as Peer
const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
const proxy = peer.createProxyServer({ target: process.argv[2], agent, changeOrigin: true })
proxy.on('error', (_error, _request, response) => response.destroy())
const server = createServer((request, response) => proxy.web(request, response))
server.listen(0, '127.0.0.1', 4096, () => process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
process.on('disconnect', () => process.exit())
