# frozen_string_literal: true

# A line of the page.
class Note < ActiveRecord::Base
end
