# frozen_string_literal: true

# holder.rb PORT PATH CONNECTIONS TLS FIELDS
#
# Opens the connections over HTTP/2, asks once on each, and holds them all. Prints a line of JSON when every one is open
# or has failed; waits for a line; then asks once more on each that is still open and prints how many answered. TLS:
# true or false; FIELDS: none, or chromium for the fields that Chromium sends.

require "json"
require "openssl"
require "socket"

PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# type, flags
SETTINGS = [4, 0].freeze
ACKNOWLEDGEMENT = [4, 1].freeze
HEADERS = [1, 5].freeze # END_STREAM, END_HEADERS
END_STREAM = 1
CHROMIUM = {
  "sec-ch-ua" => '"Chromium";v="156", "Not.A/Brand";v="24"', "sec-ch-ua-mobile" => "?0",
  "sec-ch-ua-platform" => '"Linux"', "upgrade-insecure-requests" => "1",
  "user-agent" => "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " \
                  "Chrome/156.0.0.0 Safari/537.36",
  "accept" => "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
  "sec-fetch-site" => "none", "sec-fetch-mode" => "navigate", "sec-fetch-user" => "?1", "sec-fetch-dest" => "document",
  "accept-encoding" => "gzip, deflate, br, zstd", "accept-language" => "en-US,en;q=0.9", "priority" => "u=0, i"
}.freeze

def frame(type, flags, stream, payload = "")
  [payload.bytesize].pack("N").byteslice(1, 3) << [type, flags, stream].pack("CCN") << payload
end

# RFC 7541, 5.1: an integer behind a prefix of 7 bits.
def integer(number)
  return [number].pack("C") if number < 127

  rest = number - 127
  bytes = [127]
  while rest >= 128
    bytes << ((rest % 128) + 128)
    rest /= 128
  end
  [*bytes, rest].pack("C*")
end

def text(string) = integer(string.bytesize) << string

# Indexed, so that the server's table is filled as a browser fills it.
def fields(path, tls, host, more)
  block = [0x82, tls ? 0x87 : 0x86, 0x41].pack("C*") << text(host) << "\x04".b << text(path)
  more.each { |name, value| block << "\x40".b << text(name) << text(value) }
  block
end

# One connection.
class Held
  def initialize(port, tls)
    @io = TCPSocket.new("127.0.0.1", port)
    @stream = -1
    if tls
      @io = OpenSSL::SSL::SSLSocket.new(@io, CONTEXT).tap(&:connect)
      raise IOError, "no HTTP/2" unless @io.alpn_protocol == "h2"
    end
    @io.write(PREFACE.b + frame(*SETTINGS, 0) + frame(*ACKNOWLEDGEMENT, 0))
  end

  CONTEXT = OpenSSL::SSL::SSLContext.new.tap { |context| context.alpn_protocols = %w[h2] }
  private_constant :CONTEXT

  # @return [Boolean] whether the response was complete
  def ask(block)
    @io.write(frame(*HEADERS, @stream += 2, block))
    loop do
      size, type, flags, = *head = read_head
      return false if head.empty? || type == 7 # GOAWAY

      @io.read(size)
      return true if [0, 1].include?(type) && flags.anybits?(END_STREAM)
    end
  rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
    false
  end

  private

  def read_head
    bytes = @io.read(9)
    return [] unless bytes&.bytesize == 9

    ["\0#{bytes.byteslice(0, 3)}".unpack1("N"), *bytes.unpack("x3CC")]
  end
end

port, path, count, tls, names = ARGV
tls = tls == "true"
block = fields(path, tls, "127.0.0.1:#{port}", names == "chromium" ? CHROMIUM : {})
again = fields(path, tls, "127.0.0.1:#{port}", {})
failed = 0
held = Array.new(Integer(count)) do
  Held.new(port, tls).tap { |one| one.ask(block) or failed += 1 }
rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
  failed += 1
  nil
end.compact
$stdout.sync = true
puts JSON.generate(answered: Integer(count) - failed, failed:, lost: 0)
$stdin.gets
answered = held.count { |one| one.ask(again) }
puts JSON.generate(answered:, failed: held.size - answered, lost: held.size - answered)
