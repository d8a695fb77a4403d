# frozen_string_literal: true

require "digest"

# What proxies have to pass on: early hints, uploads, streams and WebSockets.
class Proxied
  PAGE = <<~HTML
    <!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"><body><script>
      const done = {}
      const show = () => { document.body.dataset.result = JSON.stringify(done) }
      const upload = fetch("/upload", { method: "POST", body: "x".repeat(1000000) }).then(answer => answer.text())
      const stream = fetch("/stream?go=1").then(answer => answer.text())
      const socket = new WebSocket(location.href.replace(/^http/, "ws") + "socket")
      const echo = new Promise(resolve => {
        socket.onopen = () => socket.send("hello")
        socket.onmessage = event => resolve(event.data)
        socket.onerror = () => resolve("error")
      })
      Promise.all([upload, stream, echo]).then(found => { Object.assign(done, found); show() })
             .catch(error => { done.error = String(error); show() })
    </script></body>
  HTML

  def initialize
    @go = Thread::Queue.new
  end

  def call(env)
    case env["PATH_INFO"]
    when "/" then page(env)
    when "/style.css" then [200, { "content-type" => "text/css" }, ["body { color: black }"]]
    when "/upload" then upload(env["rack.input"])
    when "/stream" then [200, { "content-type" => "text/plain" }, stream(env["QUERY_STRING"] == "go=1")]
    when "/go" then go
    when "/socket" then socket(env)
    when "/client" then [200, { "content-type" => "text/plain" }, [client(Rack::Request.new(env))]]
    else [404, {}, []]
    end
  end

  private

  # What the request says of its client and of the address that the client has asked for.
  def client(request)
    forged = %w[HTTP_FORWARDED HTTP_CLIENT_IP].select { |name| request.has_header?(name) }
    [request.ip, request.base_url, *forged].join(" ")
  end

  def page(env)
    3.times { |number| env["rack.early_hints"]&.call("link" => "</style.css?#{number}>; rel=preload; as=style") }
    [200, { "content-type" => "text/html", "x-hints" => env.key?("rack.early_hints").to_s }, [PAGE]]
  end

  def upload(input)
    digest = Digest::SHA256.new
    size = 0
    while (piece = input.read(65_536))
      digest << piece
      size += piece.bytesize
    end
    [200, { "content-type" => "text/plain" }, ["#{size} #{digest.hexdigest}"]]
  end

  # The second line is written when /go was asked for: whoever has the first before has it as it was written.
  def stream(at_once)
    lambda do |stream|
      stream.write("one\n")
      @go.pop unless at_once
      stream.write("two\n")
    ensure
      stream.close
    end
  end

  def go
    @go << true
    [204, {}, []]
  end

  # RFC 6455 for one short text message of a client's.
  def socket(env)
    io = env["rack.hijack"].call
    key = Digest::SHA1.base64digest("#{env["HTTP_SEC_WEBSOCKET_KEY"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
    io.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
             "Sec-WebSocket-Accept: #{key}\r\n\r\n")
    size = io.read(2).getbyte(1) & 0x7f
    mask = io.read(4).bytes
    text = io.read(size).bytes.each_with_index.map { |byte, index| byte ^ mask[index % 4] }
    io.write([0x81, size, *text].pack("C*"))
    io.read(2) # the client's goodbye
    [200, {}, []]
  ensure
    io&.close
  end
end

run Proxied.new
