# frozen_string_literal: true

# The page of a room. A browser that has it may subscribe to the room: its stream's name is signed.
class RoomsController < ApplicationController
  def show
    @room = params[:id]
  end
end
