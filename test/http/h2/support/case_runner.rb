# frozen_string_literal: true

require "support/h2_client"

# Runs the cases of cases.txt. Whoever includes it opens connections with `connect`.
module H2CaseRunner
  CASES = File.read(File.expand_path("../cases.txt", __dir__)).lines(chomp: true).grep_v(/\A(#|\z)/)
              .slice_before(/\A= /).freeze

  # Is a closed connection as good as an error code? h2spec takes it so; ours has to name the error.
  def closing_suffices? = false

  # @return [String, nil]
  def failure_of(title, *lines)
    @client = H2Client.new(connect)
    raw = lines.first == "raw"
    lines.shift if raw
    @client.send_preface unless raw
    lines.each do |line|
      seen = run_line(line)
      return "#{title}: no #{line}, but #{seen}" if seen
    end
    nil
  ensure
    @client&.close
  end

  # @return [String, nil] what came in place of what was expected
  def run_line(line)
    case line
    when /\A> (.*)/ then @client.send_frame(Regexp.last_match(1))
    when /\A! (.*)/ then @client.send_bytes(@client.bytes_of(Regexp.last_match(1)))
    when /\A< (.*)/ then return miss(Regexp.last_match(1))
    when /\Arequests (\d+)/
      Integer(Regexp.last_match(1)).times { |i| @client.send_frame("HEADERS es+eh #{(2 * i) + 1} get") }
    else raise ArgumentError, "what is #{line}?"
    end
    nil
  end

  def miss(expected)
    @client.send_frame(%(PING - 0 "are you?")) if expected == "ping"
    seen = []
    while (frame = @client.read_frame)
      return if expected?(expected, frame)

      seen << "#{frame.type} #{frame.flags} on #{frame.stream} (#{frame.error || frame.payload.bytesize})"
    end
    return if expected == "end" || (closing_suffices? && expected.include?("_error"))

    "#{seen.join(", ")} and the end"
  end

  def expected?(expected, frame)
    case expected
    when /\Aanswer (\d+)/ then frame.stream == Regexp.last_match(1).to_i && frame.end_stream?
    when /\Adata (\d+) (\d+)/
      frame.type == "DATA" && [frame.stream, frame.payload.bytesize] == Regexp.last_match.captures.map(&:to_i)
    when /\Astream_error (.*)/, /\Aconnection_error (.*)/
      types = expected.start_with?("stream") ? %w[GOAWAY RST_STREAM] : %w[GOAWAY]
      Regexp.last_match(1).split.include?(frame.error) && types.include?(frame.type)
    when "ping" then frame.type == "PING" && frame.flags == 1 && frame.payload == "are you?"
    when "settings", "ack" then frame.type == "SETTINGS" && (frame.flags == 1) == (expected == "ack")
    else false
    end
  end
end
