# frozen_string_literal: true

# Tells of each new note.
class NotesChannel < ApplicationCable::Channel
  def subscribed
    stream_from "notes"
  end

  def count(_data)
    transmit({ count: Note.count })
  end
end
