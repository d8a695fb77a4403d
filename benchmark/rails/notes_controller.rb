# frozen_string_literal: true

# The pages.
class NotesController < ActionController::Base
  prepend_view_path File.expand_path("views", __dir__)

  # Three queries and twenty lines of HTML.
  def index
    @count = Note.count
    @newest = Note.order(id: :desc).first
    @notes = Note.order(:id).limit(20).to_a
  end

  # The same, after something else has answered, another service for instance, in a twentieth of a second.
  def slow
    sleep 0.05
    index
    render :index
  end

  # Thirty queries and forty partials, as a page of a chat has them.
  def board
    @newest = Note.order(id: :desc).first
    @notes = Note.order(:id).limit(40).to_a
    @replies = @notes.first(28).to_h { |note| [note.id, Note.where("id > ?", note.id).limit(3).to_a] }
  end

  # That it runs.
  def hello = render(plain: "Hello, world!\n")
end
