# frozen_string_literal: true

require "heddle"
require_relative "game"

# One player's view of the board. The board is common, whether clicks set flags is the player's own.
class Board < Heddle::Live::Page
  GAME = Game.new
  FACES = { playing: "clear the board", won: "won", lost: "lost" }.freeze
  HEAD = '<link rel="stylesheet" href="/board.css">'

  template File.join(__dir__, "board.erb")
  event :press, x: Integer, y: Integer
  event :switch
  event :restart

  def mount(_params)
    @flagging = false
    subscribe(Game::TOPIC) { |message| GAME.apply(message) }
    GAME.catch_up
  end

  def press(x:, y:) = GAME.play(@flagging ? "flag" : "reveal", [x, y])

  def switch = @flagging = !@flagging

  def restart = GAME.start_anew

  def title = "Minesweeper for everybody"

  def head = HEAD
end
