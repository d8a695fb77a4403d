# frozen_string_literal: true

# A line on the board.
class Note < ApplicationRecord
  validates :text, presence: true
end
