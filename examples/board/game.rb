# frozen_string_literal: true

require "json"
require "zlib"

# A game of minesweeper for all visitors. Each move is a message of a topic, and the board is what all moves since
# the beginning make of it: so every process of the server has the same board, and a new one can make it again.
class Game
  TOPIC = "board"
  WIDTH = 16
  HEIGHT = 12
  MINES = 26
  # A game has so many moves at most: they have to be in the history, see config/heddle.rb.
  MOVES = 900

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
    epoch, last = place_of(Heddle::PubSub.position(TOPIC))
    restart(nil, 0) unless epoch == @epoch # offsets of another epoch say nothing
    @epoch = epoch
    _, last = place_of(Heddle::PubSub.publish(TOPIC, { move: "none" })) if @offset.zero? && last.positive?
    return if (start = @offset) >= last

    messages = messages_since(start, last) || last_game(start, last)
    return if @offset >= last # another page has applied them meanwhile

    messages ? messages.each { |message| apply(message) } : restart(nil, last)
  end

  # The first page that gets a message applies it for all pages of this process. None can miss one: a page subscribes
  # before it catches up.
  # @param message [Heddle::PubSub::Message]
  def apply(message)
    epoch, offset = place_of(message.position)
    if message.reset? # the server was stopped meanwhile
      @epoch = epoch
      return restart(nil, offset)
    end
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

  # @return [Array(String, Integer)] epoch and offset
  def place_of(position) = position.split(":").then { |epoch, offset| [epoch, offset.to_i] }

  # @return [Array<Heddle::PubSub::Message>, nil] nil: some of them are gone
  def messages_since(start, last)
    done = Heddle::Promise.new
    messages = []
    reading = Heddle::PubSub.subscribe(TOPIC, since: "#{@epoch}:#{start}") do |message|
      next if done.settled?
      next done.resolve(nil) if message.reset?

      messages << message
      done.resolve(messages) if place_of(message.position).last >= last
    end
    done.value.tap { reading.cancel }
  end

  # Moves without the beginning of their game would make another board. Where it is depends on the messages of other
  # topics: the search is between an offset whose messages are gone and one whose messages are there.
  # @return [Array<Heddle::PubSub::Message>, nil] from the last restart on; nil: it is gone
  def last_game(gone, last)
    kept = last
    while kept - gone > 1
      start = (gone + kept) / 2
      next gone = start unless (messages = messages_since(start, last))

      kept = start
      first = messages.rindex { |message| JSON.parse(message.data)["move"] == "restart" }
      return messages.drop(first) if first
    end
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
