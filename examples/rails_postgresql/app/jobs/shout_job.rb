# frozen_string_literal: true

# Leaves a note in capitals.
class ShoutJob < ActiveJob::Base
  def perform(text)
    Note.create!(text: text.upcase)
  end
end
