# frozen_string_literal: true

require_relative "../../../support/h2_client"
require_relative "scripted_server"

# A server of HTTP/2 that sends what frames its block says, in the words of test/http/h2/cases.txt.
class H2ScriptedServer < ScriptedServer
  # A connection: frames both ways.
  class Peer < H2Client
    # Header blocks are not decoded: the tests know which request is on which stream.
    HEAD = ":status=200 content-type=text/plain"

    attr_reader :socket

    # An answer with a body, in two frames.
    def answer(stream, body = "hello", fields = "content-length=#{body.bytesize}")
      send_frame("HEADERS eh #{stream} #{HEAD} #{fields}")
      send_frame("DATA es #{stream} #{body.unpack1("H*")}")
    end

    # The next request's frame HEADERS; what else comes is dropped.
    # @return [H2Client::Frame, nil]
    def read_request
      while (frame = read_frame)
        return frame if frame.type == "HEADERS"
      end
    end

    # Answers each request with RST_STREAM.
    # @param code [Integer] HTTP/2's error code
    def reset_all(code)
      while (request = read_request)
        send_frame("RST_STREAM - #{request.stream} ##{code}")
      end
    end

    # Until the client closes.
    def read_to_end
      nil while read_frame
    end

    # Reads until a frame of this type.
    def read_until(type)
      while (frame = read_frame)
        return frame if frame.type == type
      end
    end
  end

  # @yield [peer, number of the connection] after the preface and the SETTINGS of both
  # @param settings [String] payload of the SETTINGS frame
  def initialize(settings: "", **, &script)
    @settings = settings
    @script = script
    super(**)
  end

  private

  def serve(socket, number)
    preface = socket.read(H2Client::PREFACE.bytesize)
    serve_frames(socket, number) if preface == H2Client::PREFACE
  end

  def serve_frames(socket, number)
    peer = Peer.new(socket)
    peer.send_frame("SETTINGS - 0 #{@settings}")
    peer.send_frame("SETTINGS ack 0")
    @script.call(peer, number)
  end
end
