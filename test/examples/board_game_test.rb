# frozen_string_literal: true

require "test_helper"
require "heddle"
require_relative "../../examples/board/game"

# The game of examples/board: every process computes the same board from the moves in the history.
class BoardGameTest < Minitest::Test
  # Messages of a topic that the history keeps.
  KEPT = 100

  def setup
    Heddle::PubSub::History.open(16 << 20, KEPT, 300)
  end

  def publish(move, at, topic = Game::TOPIC) = Heddle::PubSub.publish(topic, { move:, at: })

  def cells(game) = (0...Game::WIDTH).to_a.product((0...Game::HEIGHT).to_a).map { |at| game.cell(*at) }

  def late_game = Game.new.tap(&:catch_up)

  # A process that was there from the beginning, and has applied all moves.
  def play
    game = Game.new
    Heddle.run do
      game.catch_up
      Heddle::PubSub.subscribe(Game::TOPIC) { |message| game.apply(message) }
      yield
      game.catch_up
      assert_equal cells(game), cells(late_game)
      assert_equal game.left, late_game.left
    end
    game
  end

  def test_a_late_process_has_the_board_though_other_topics_are_busier
    [[0, 0], [1500, 0], [1500, 4000], [0, 4000]].each do |before, after|
      game = play do
        (KEPT + 50).times { publish("none", nil) }
        publish("restart", 7)
        before.times { publish("x", nil, "other") }
        publish("reveal", [3, 4])
        publish("flag", [0, 0])
        after.times { publish("x", nil, "other") }
        publish("flag", [15, 11])
      end

      assert_operator cells(game).count { |kind, _| kind.start_with?("open") }, :>, 0
      assert_operator game.left, :<, Game::MINES
    end
  end

  def test_a_game_that_missed_the_beginning_of_an_epoch_begins_anew
    game = Game.new
    Heddle.run do
      publish("flag", [1, 1])
      game.catch_up
      game.apply(Heddle::PubSub::Message.new(topic: Game::TOPIC, data: nil, position: "zzzzzzzzzzzz:999999999"))
      assert_equal Game::MINES, game.left
      publish("restart", 3)
      publish("flag", [2, 2])
      game.catch_up

      assert_equal Game::MINES - 1, game.left
      assert_equal cells(late_game), cells(game)
    end
  end
end
