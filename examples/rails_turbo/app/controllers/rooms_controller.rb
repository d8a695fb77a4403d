# frozen_string_literal: true

# The page of a room. Whoever has it may hear the room: its stream's name is signed.
class RoomsController < ApplicationController
  def show
    @room = params[:id]
  end
end
