# frozen_string_literal: true

require "json"
require "zlib"

# A game of minesweeper that everybody plays. Each move is a message of a topic, and the board is what all moves since
# the beginning make of it: so every process of the server has the same board, and a new one can make it again.
class Game
  TOPIC = "board"
  WIDTH = 16
  HEIGHT = 12
  MINES = 26
  # A game has so many moves at most: they have to be in the history, see config/heddle.rb.
  MOVES = 900
  # Among so many messages of the topic is a restart.
  KEPT = MOVES + 50

  # @return [Symbol] :playing, :won or :lost
  attr_reader :state

  def initialize
    restart(nil)
    @epoch = nil
    @offset = 0
  end

  # @return [Integer] mines without a flag
  def left = MINES - @flags.size

  # @return [Array(String, String)] class and text of a cell
  def cell(x, y)
    at = [x, y]
    return ["flag", "⚑"] if @flags.include?(at) && @state == :playing
    return ["mine", "✹"] if @state != :playing && @mines&.include?(at)
    return ["closed", ""] unless @open.include?(at)

    count = around(at).count { |other| @mines.include?(other) }
    ["open n#{count}", count.zero? ? "" : count.to_s]
  end

  def play(move, at)
    Heddle::PubSub.publish(TOPIC, { move:, at: }) if inside?(at)
    start_anew if @moves >= MOVES
  end

  def start_anew = Heddle::PubSub.publish(TOPIC, { move: "restart", at: rand(1 << 32) })

  # Applies every move that has been made so far. Offsets count the messages of other topics, too: so this one may have
  # none, until a move is added that is none. The moves of earlier games need not be there any more.
  def catch_up
    @epoch, last = Heddle::PubSub.position(TOPIC).split(":")
    last = last.to_i
    last = offset_of(Heddle::PubSub.publish(TOPIC, { move: "none" })) if @offset.zero? && last.positive?
    return if @offset >= last

    starts = [@offset, last - (4 * KEPT), last - KEPT].select { |start| start >= @offset }
    starts.any? { |start| read_from(start, last) } or restart(nil, last)
  end

  # The first page that gets a message applies it for all pages of this process. None can miss one: a page subscribes
  # before it catches up.
  # @param message [Heddle::PubSub::Message]
  def apply(message)
    offset = offset_of(message.position)
    return restart(nil, offset) if message.reset? # the server was stopped meanwhile
    return if offset <= @offset

    @offset = offset
    move, at = JSON.parse(message.data).values_at("move", "at")
    @moves += 1 unless move == "none"
    case move
    when "restart" then restart(at)
    when "reveal" then reveal(at)
    when "flag" then flag(at)
    end
  end

  private

  def offset_of(position) = position.split(":").last.to_i

  # @return [Boolean] whether the messages from there on were all there
  def read_from(start, last)
    done = Heddle::Promise.new
    reading = Heddle::PubSub.subscribe(TOPIC, since: "#{@epoch}:#{start}") do |message|
      next done.settled? || done.resolve(false) if message.reset?

      apply(message)
      done.resolve(true) if @offset >= last && !done.settled?
    end
    done.value.tap { reading.cancel }
  end

  def restart(seed, offset = @offset)
    @seed = seed
    @offset = offset
    @moves = 0
    @mines = nil
    @open = {}
    @flags = {}
    @state = :playing
  end

  def flag(at)
    return if @open.include?(at) || @state != :playing

    @flags.delete(at) or @flags[at] = true
  end

  # The first move never meets a mine.
  def reveal(at)
    return if @flags.include?(at) || @state != :playing

    @mines ||= lay_mines(at)
    return @state = :lost if @mines.include?(at)

    open_from(at)
    @state = :won if @open.size == (WIDTH * HEIGHT) - MINES
  end

  def lay_mines(start)
    free = (0...WIDTH).to_a.product((0...HEIGHT).to_a) - around(start) - [start]
    free.sample(MINES, random: Random.new(@seed || Zlib.crc32(@epoch))).to_h { |at| [at, true] }
  end

  def open_from(start)
    waiting = [start]
    while (at = waiting.pop)
      next if @open.include?(at) || @flags.include?(at)

      @open[at] = true
      waiting.concat(around(at)) if around(at).none? { |other| @mines.include?(other) }
    end
  end

  def around((x, y))
    [-1, 0, 1].product([-1, 0, 1]).map { |right, down| [x + right, y + down] }
              .select { |other| inside?(other) && other != [x, y] }
  end

  def inside?((x, y)) = (0...WIDTH).cover?(x) && (0...HEIGHT).cover?(y)
end
