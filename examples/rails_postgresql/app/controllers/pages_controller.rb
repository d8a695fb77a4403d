# frozen_string_literal: true

# A page whose layout is sent before its content is made.
class PagesController < ApplicationController
  def show
    render stream: true
  end
end
