# frozen_string_literal: true

# The board.
class NotesController < ApplicationController
  skip_forgery_protection only: :create

  def index
    @notes = Note.order(id: :desc).limit(20)
  end

  def create
    note = Note.create!(text: params.require(:text))
    ActionCable.server.broadcast("notes", { text: note.text })
    render json: { id: note.id }, status: :created
  end
end
