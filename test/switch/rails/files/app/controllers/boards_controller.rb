# frozen_string_literal: true

class BoardsController < ApplicationController
  def show = nil
end
