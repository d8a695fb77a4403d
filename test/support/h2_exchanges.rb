# frozen_string_literal: true

require_relative "h2_client"

# Requests on the streams of one connection that come together.
module H2Exchanges
  # Every other one has a body.
  # @param socket [IO] connected
  # @param count [Integer] of requests
  # @return [Hash{Integer => String}] stream and content
  def exchange_together(socket, count, path: "/")
    client = H2Client.new(socket)
    client.send_preface
    count.times { |i| send_request(client, (2 * i) + 1, path, ("body #{(2 * i) + 1}" if i.odd?)) }
    read_contents(client, count)
  ensure
    client&.close
  end

  private

  def send_request(client, id, path, body)
    fields = ":method=#{body ? "POST" : "GET"} :scheme=http :authority=localhost :path=#{path}"
    client.send_frame("HEADERS #{"es+" unless body}eh #{id} #{fields}")
    client.send_frame(%(DATA es #{id} "#{body}")) if body
  end

  def read_contents(client, count)
    contents = Hash.new { |hash, stream| hash[stream] = +"" }
    ended = 0
    while ended < count
      frame = client.read_frame
      contents[frame.stream] << frame.payload if frame.type == "DATA"
      ended += 1 if frame.end_stream?
    end
    contents
  end
end
