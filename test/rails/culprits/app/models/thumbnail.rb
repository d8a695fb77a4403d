# frozen_string_literal: true

# A picture, made smaller by a program of its own.
class Thumbnail
  def convert
    system("sleep", "0.8", exception: true) # culprit: process
  end
end
