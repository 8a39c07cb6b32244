"""The value of a team's servers for one user: their texts, their pace, and the way to them."""
